#include "engine/mixed.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>

#include <sys/epoll.h>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket::engine {
namespace {

/// Parts without channels have nothing to do but to answer strangers now and then.
constexpr unsigned polls_between_looks = 64;

}  // namespace

std::string list_item(std::string_view name, std::string_view address) {
  return fmt::format("{} {} {}", name, address.size(), address);
}

std::string address_in(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view found = take_until(list, " ");
    const auto bytes = parse_integer(take_until(list, " "));
    if (!bytes || *bytes < 0 || static_cast<std::uint64_t>(*bytes) > list.size()) return {};
    const std::string_view address = list.substr(0, static_cast<std::size_t>(*bytes));
    if (found == name) return std::string(address);
    list.remove_prefix(address.size());
  }
  return {};
}

Result<std::unique_ptr<Transport>> MixedTransport::make(std::vector<Part> parts) {
  if (parts.size() > parts_max) {
    return Status(StatusCode::limit_exceeded,
                  fmt::format("{} transports at once, of at most {}", parts.size(), parts_max))
        .with_hint("name fewer of them in HOCKET_TRANSPORT");
  }
  std::unique_ptr<MixedTransport> made(new MixedTransport(std::move(parts)));
  made->is_used_.resize(made->parts_.size());
  if (Status status = made->watch(); !status.ok()) return status;
  return std::unique_ptr<Transport>(std::move(made));
}

Status MixedTransport::watch() {
  const auto can_sleep = [](const Part& part) { return part.transport->descriptor() >= 0; };
  if (!std::ranges::all_of(parts_, can_sleep)) return {};
  epoll_ = Fd::open_unforked([] { return ::epoll_create1(EPOLL_CLOEXEC); });
  for (const Part& part : parts_) {
    epoll_event event = {.events = EPOLLIN, .data = {}};
    if (epoll_ &&
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, part.transport->descriptor(), &event) == 0)
      continue;
    return Status(StatusCode::system_error, "can't watch transports")
        .with_system_error(errno)
        .with_hint("raise the limit of open files: ulimit -n");
  }
  return {};
}

std::string MixedTransport::address() const {
  std::string text;
  for (const Part& part : parts_) text += list_item(part.name, part.transport->address());
  return text;
}

Status MixedTransport::connect(std::span<const std::string> addresses) {
  for (const Part& part : parts_) {
    std::vector<std::string> theirs;
    for (const std::string& each : addresses) {
      theirs.push_back(address_in(each, part.name));
    }
    if (Status status = part.transport->connect(theirs); !status.ok()) return status;
  }
  return {};
}

void MixedTransport::await_peers() noexcept {
  for (const Part& part : parts_) part.transport->await_peers();
}

Result<std::size_t> MixedTransport::way_to(std::uint32_t peer) const {
  std::string why;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Status status = parts_[i].transport->can_reach(peer);
    if (status.ok()) return i;
    why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", parts_[i].name, status.what());
  }
  return Status(StatusCode::unsupported, std::move(why)).with_peer(static_cast<int>(peer));
}

Status MixedTransport::can_reach(std::uint32_t peer) const { return way_to(peer).status(); }

Result<ChannelId> MixedTransport::open(std::uint32_t peer, std::uint64_t lane) {
  const auto part = way_to(peer);
  if (!part.ok()) return part.status();
  const auto id = parts_[*part].transport->open(peer, lane);
  if (!id.ok()) return id.status();
  if (*id >= channel_ids_end) {
    return Status(StatusCode::protocol_error,
                  fmt::format("the transport {} gave {} as the id of a channel, which is too large",
                              parts_[*part].name, *id));
  }
  is_used_[*part] = true;
  return static_cast<ChannelId>(*part) * channel_ids_end + *id;
}

/// Ops in a row that are of one part go there together.
std::size_t MixedTransport::post(std::span<const TransportOp> ops) noexcept {
  std::size_t count = 0;
  while (count < ops.size()) {
    const std::size_t part = place_of(ops[count].channel).part;
    std::size_t translated = 0;
    for (const TransportOp& op : ops.subspan(count)) {
      const Place place = place_of(op.channel);
      if (place.part != part || translated == translated_.size()) break;
      translated_[translated] = op;
      translated_[translated++].channel = place.id;
    }
    const std::size_t taken =
        parts_[part].transport->post(std::span(translated_).first(translated));
    count += taken;
    if (taken < translated) break;
  }
  return count;
}

std::size_t MixedTransport::poll(std::span<TransportCompletion> completions) noexcept {
  has_moved_ = false;
  try {
    loans_.reserve(loans_.size() + completions.size());
  } catch (const std::bad_alloc&) {
    return 0;
  }
  const bool looks_at_all = ++polls_ % polls_between_looks == 0;
  std::size_t count = 0;
  for (std::size_t i = 0; i < parts_.size() && count < completions.size(); ++i) {
    const std::size_t part = (next_ + i) % parts_.size();
    if (!is_used_[part] && !looks_at_all) continue;
    const std::size_t more = parts_[part].transport->poll(completions.subspan(count));
    has_moved_ |= parts_[part].transport->has_moved();
    for (std::size_t k = count; k < count + more; ++k) {
      if (completions[k].lent != nullptr) loans_.emplace_back(completions[k].lent, part);
    }
    count += more;
  }
  next_ = (next_ + 1) % parts_.size();
  return count;
}

void MixedTransport::give_back(const std::byte* lent) noexcept {
  const auto loan = std::ranges::find(loans_, lent, [](const auto& each) { return each.first; });
  if (loan == loans_.end()) return;
  parts_[loan->second].transport->give_back(lent);
  *loan = loans_.back();
  loans_.pop_back();
}

/// All are asked, as what one has to do does not make the other's descriptor readable.
bool MixedTransport::prepare_to_sleep() noexcept {
  bool may_sleep = static_cast<bool>(epoll_);
  for (const Part& part : parts_) may_sleep = part.transport->prepare_to_sleep() && may_sleep;
  if (!may_sleep) polls_ = polls_between_looks - 1;  // whoever has something to do is polled next
  return may_sleep;
}

void MixedTransport::close(ChannelId channel, const Status& reason) noexcept {
  const Place place = place_of(channel);
  parts_[place.part].transport->close(place.id, reason);
}

void MixedTransport::close_lanes(std::uint64_t first, std::uint64_t last,
                                 const Status& reason) noexcept {
  for (const Part& part : parts_) part.transport->close_lanes(first, last, reason);
}

void MixedTransport::register_memory(const RegisteredMemory& memory) noexcept {
  for (const Part& part : parts_) part.transport->register_memory(memory);
}

void MixedTransport::deregister_memory(const RegisteredMemory& memory) noexcept {
  for (const Part& part : parts_) part.transport->deregister_memory(memory);
}

Status MixedTransport::register_device_memory(const RegisteredMemory& memory, int dma_buf,
                                              std::span<const std::uint32_t> peers) {
  // One that sends on what another has received might read it before it is written.
  std::optional<std::size_t> only;
  for (const std::uint32_t peer : peers) {
    const auto part = way_to(peer);
    if (!part.ok()) return part.status();
    if (only.value_or(*part) != *part) {
      return {StatusCode::unsupported, "several transports are used at once"};
    }
    only = *part;
  }
  if (!only) return {};
  return parts_[*only].transport->register_device_memory(memory, dma_buf, peers);
}

}  // namespace hocket::engine
