#include "store/tcp_store.hpp"

#include <algorithm>
#include <utility>

#include "base/limits.hpp"

namespace hocket::store {

TcpStore::TcpStore(ConnectOptions options, std::unique_ptr<Connection> connection)
    : options_(std::move(options)), connection_(std::move(connection)) {
  set_timeout(options_.timeout);
}

TcpStore::~TcpStore() {
  if (origin_.is_inherited()) abandon(connection_);
}

Result<std::unique_ptr<TcpStore>> TcpStore::connect(ConnectOptions options) {
  auto connection = Connection::open(options);
  if (!connection.ok()) return connection.status();
  return std::unique_ptr<TcpStore>(new TcpStore(std::move(options), std::move(*connection)));
}

Result<std::unique_ptr<Store>> TcpStore::clone() {
  ConnectOptions options = options_;
  options.timeout = timeout();
  auto copy = connect(std::move(options));
  if (!copy.ok()) return copy.status();
  return std::unique_ptr<Store>(std::move(*copy));
}

std::string TcpStore::describe() const { return "the store at " + options_.server.to_string(); }

void TcpStore::close(Status why) {
  if (!origin_.is_inherited()) connection_->close(std::move(why));
}

Reply TcpStore::perform(Request request) {
  if (origin_.is_inherited()) return {.status = inherited_status(describe())};
  const Deadline deadline = Deadline::after(monotonic_clock(), request.timeout);
  // The server's own answer to a request whose time is over says more than ours could.
  const Instant latest =
      deadline.is_never() ? Instant::max() : deadline.at() + Duration(limits::store_answer_timeout);
  const auto id = connection_->send(request, Deadline(latest));
  if (!id.ok()) return {.status = id.status()};
  Reply reply = connection_->receive(*id, Deadline(latest));
  if (fits(reply, request)) return reply;
  return {.status = Status(StatusCode::protocol_error, "a reply that does not fit the request")
                        .with_hint("run the same version of Hocket on every host")};
}

}  // namespace hocket::store
