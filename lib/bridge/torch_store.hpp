// A client of the server that PyTorch's TCPStore runs, such as that of torchrun.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "hocket/store.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "net/endpoint.hpp"

namespace hocket::bridge {

/// A call that waits asks again and again: these servers don't wake a client that waits for a key
/// which compare_set makes, and meanwhile other threads can use the connection. After a failure the
/// next call connects again.
///
/// These servers don't say whether compare_set changed the value. If another client sets the same
/// `desired` at the same time, both may be told that they did; give each client its own value.
class TorchStore final : public hocket::Store {
 public:
  /// Waits for the server; throws Timeout if there is none within the timeout, which is also that
  /// of later calls.
  TorchStore(net::Endpoint server, Duration timeout);
  TorchStore(const TorchStore&) = delete;
  TorchStore& operator=(const TorchStore&) = delete;
  ~TorchStore() override;

  void set(std::string_view key, std::string_view value, TimeLimit timeout = {}) override;
  [[nodiscard]] std::string get(std::string_view key, TimeLimit timeout = {}) override;
  void wait(std::span<const std::string> keys, TimeLimit timeout = {}) override;
  [[nodiscard]] bool check(std::span<const std::string> keys, TimeLimit timeout = {}) override;
  std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit timeout = {}) override;
  Swap compare_set(std::string_view key, std::string_view expected, std::string_view desired,
                   TimeLimit timeout = {}) override;
  void append(std::string_view key, std::string_view more, TimeLimit timeout = {}) override;
  bool delete_key(std::string_view key, TimeLimit timeout = {}) override;
  /// Counts TCPStore's own key, too.
  [[nodiscard]] std::int64_t num_keys(TimeLimit timeout = {}) override;
  [[nodiscard]] std::string describe() const override;

 private:
  struct Connection;
  class Turn;

  template <class Talk>
  auto talk(std::string_view operation, TimeLimit timeout, const Talk& work);
  void wait_until(Deadline deadline, std::span<const std::string> keys, Duration timeout);

  const net::Endpoint server_;
  const Origin origin_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hocket::bridge
