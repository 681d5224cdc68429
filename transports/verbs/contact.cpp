#include "transports/verbs/contact.hpp"

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <sys/socket.h>

#include "net/silence.hpp"
#include "transports/common/failures.hpp"

namespace hocket::verbs {

Status Contact::begin(link::Link link, const Card& ours, Deadline give_up) {
  link_ = std::move(link);
  said_ = std::move(link_.surplus);
  give_up_ = give_up;
  state_ = State::told_card;
  net::limit_unanswered(socket());  // what goes over it fits into any window
  return say(ours.encode());
}

/// So few bytes fit into a connection that has carried little.
Status Contact::say(const std::string& words) {
  const ssize_t sent = ::send(socket(), words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent == static_cast<ssize_t>(words.size())) return {};
  return common::lost_peer(number, "its connection broke", sent < 0 ? errno : 0);
}

Result<bool> Contact::look() {
  std::array<char, 512> bytes;
  for (;;) {
    const ssize_t count = ::recv(socket(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) break;
    if (count == 0) return common::lost_peer(number, "its connection ended");
    if (count < 0) return common::lost_peer(number, "its connection broke", errno);
    said_.append(bytes.data(), static_cast<std::size_t>(count));
    if (said_.size() > card_bytes + 1) {
      return Status(StatusCode::protocol_error, "it says more than it may");
    }
  }
  return state_ == State::told_card ? said_.size() >= card_bytes : said_.size() > card_bytes;
}

Result<Card> Contact::card() const {
  return Card::decode(std::string_view(said_).substr(0, card_bytes));
}

Status Contact::say_ready() {
  state_ = State::told_ready;
  return say(std::string(1, ready_mark));
}

bool Contact::try_to_link() noexcept {
  if (state_ != State::told_ready || said_.size() <= card_bytes) return false;
  state_ = State::linked;
  give_up_ = Deadline::never();
  return true;
}

}  // namespace hocket::verbs
