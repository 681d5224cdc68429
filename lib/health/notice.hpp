// What a rank tells all others when something has ended: who, what, and in which operation it was
// noticed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket::health {

/// How bad it is, and how sure.
enum class Finding : std::uint8_t {
  death = 1,    // the process of `culprit` has ended
  silence = 2,  // `culprit` has not answered `origin` for too long
  cut_off = 3,  // `culprit` receives nothing: it says so, or it called `origin` silent, which lives
  failure = 4,  // of a communicator, as `origin` met it
};

inline constexpr std::uint32_t nobody = UINT32_MAX;

/// A failure of the rank's own system, device or callback: to other ranks it is `aborted`.
[[nodiscard]] bool is_local_failure(StatusCode code) noexcept;

struct Notice {
  Finding finding = Finding::death;
  std::uint32_t origin = 0;
  std::uint32_t culprit = nobody;
  std::uint64_t communicator = 0;  // of a failure
  StatusCode code = StatusCode::peer_lost;
  std::int32_t system_error = 0;
  std::int64_t time = 0;  // of day, as the origin's clock has it: ns since 1970, UTC
  std::string what = {};  // whole words: "rank 2 (pid 7 on node1) has died"
  std::string hint = {};
  std::string operation = {};  // in which it was met, "all_reduce #12"; empty outside of one
  std::int32_t step = -1;
  std::uint32_t awaited = nobody;  // for whom the origin was waiting in that step
  bool is_second_hand = false;     // the origin was told, and has not found it out itself

  /// What a failure of this rank's calls is: the same on all ranks, ranks being those of the world.
  [[nodiscard]] Status status() const;
};

[[nodiscard]] std::string encode(const Notice& notice);
/// protocol_error for what is none.
[[nodiscard]] Result<Notice> decode_notice(std::string_view bytes);

}  // namespace hocket::health
