// A client's connection as bytes, over TLS or plain. One thread may send while another receives;
// neither waits for the other's socket.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/fd.hpp"
#include "wire/tls.hpp"

namespace hocket::store {

class Channel {
 public:
  /// Over TLS if there is a context, which it borrows; plain without. Returns when TLS is ready.
  [[nodiscard]] static Result<std::unique_ptr<Channel>> open(Fd socket, const wire::TlsContext* tls,
                                                             Deadline deadline);

  /// What only the two ends know of this connection; empty without TLS.
  [[nodiscard]] Result<std::string> binding() const;

  /// All of the bytes. After a failure some may have been sent.
  [[nodiscard]] Status send(std::string_view bytes, Deadline deadline);

  /// What has come, valid until the next call; over TLS it may be nothing yet. Fails with peer_lost
  /// when the other side has closed.
  [[nodiscard]] Result<std::string_view> receive(Deadline deadline);

  /// The next message of a dialogue, of which the size is known and behind which nothing comes
  /// before an answer.
  [[nodiscard]] Result<std::string> receive_exactly(std::size_t bytes, Deadline deadline);

  [[nodiscard]] int socket() const noexcept { return socket_.get(); }

 private:
  Channel(Fd socket, std::unique_ptr<wire::TlsFilter> filter) noexcept
      : socket_(std::move(socket)), filter_(std::move(filter)) {}

  [[nodiscard]] Status shake_hands(Deadline deadline);
  [[nodiscard]] Status send_encrypted(std::string_view bytes, Deadline deadline);
  [[nodiscard]] Result<std::string_view> decrypt(std::string_view received);

  const Fd socket_;
  std::mutex mutex_;                               // of the filter, never held while waiting
  const std::unique_ptr<wire::TlsFilter> filter_;  // null without TLS

  // Of the thread that receives.
  std::vector<char> received_;
  std::string decrypted_;
};

}  // namespace hocket::store
