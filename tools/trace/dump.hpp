// The records of one rank (lib/record), read from its file: while the rank runs, or afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hocket/status.hpp"

#include "record/layout.hpp"

namespace hocket::trace {

struct Dump {
  record::Header header = {};
  std::vector<record::Entry> entries = {};  // in the order in which the operations began
  record::Life life = record::Life::gone;   // never `joined`
  std::int64_t now = 0;  // when it was read, or the last time that it mentions if the rank is gone

  [[nodiscard]] std::uint32_t rank() const noexcept { return header.rank; }
  [[nodiscard]] std::string host() const { return header.host.data(); }
  /// "rank 3 (pid 12 on node1)"
  [[nodiscard]] std::string name() const;
  /// Nanoseconds since 1970 of a time in the records.
  [[nodiscard]] std::int64_t universal(std::int64_t time) const noexcept {
    return header.universal_time + (time - header.monotonic_time);
  }
};

/// The ranks that have met each other, by rank. Some may be missing.
struct World {
  std::uint64_t id = 0;
  std::uint32_t size = 0;
  std::vector<Dump> dumps = {};

  [[nodiscard]] const Dump* find(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
};

/// Fails where the file can't be read, or holds no records of this version.
[[nodiscard]] Result<Dump> read_dump(const std::string& path);
/// Copies a rank's file as it is now. Fails as read_dump() does, or where `to` can't be written.
[[nodiscard]] Status copy_dump(const std::string& from, const std::string& to);

/// The files of all ranks whose processes live on this host, as far as this user may look at them.
[[nodiscard]] std::vector<std::string> live_record_files();
/// The files of ranks in a folder, in the order of their names.
[[nodiscard]] Result<std::vector<std::string>> record_files_in(const std::string& folder);

/// Groups the dumps by world. If there are two of one rank, the later one counts.
[[nodiscard]] std::vector<World> worlds_of(std::vector<Dump> dumps);

}  // namespace hocket::trace
