#include "transports/verbs/wire.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "wire/fields.hpp"

namespace hocket::verbs {

std::string Card::encode() const {
  std::string bytes;
  wire::FieldWriter to(bytes);
  to.integer(version);
  to.integer(rails);
  for (const End& end : ends) {
    bytes.append(end.gid.begin(), end.gid.end());
    to.integer(end.queue_pair);
    to.integer(end.first_packet);
    to.integer(end.lid);
    to.integer(end.mtu);
    to.integer(static_cast<std::uint8_t>(end.is_ethernet));
  }
  return bytes;
}

Result<Card> Card::decode(std::string_view bytes) {
  wire::FieldReader from(bytes);
  Card card = {.version = from.integer<std::uint32_t>(), .rails = from.integer<std::uint32_t>()};
  if (card.version != card_version) {
    return Status(StatusCode::mismatch, fmt::format("it has version {} of the verbs transport, and "
                                                    "we have {}",
                                                    card.version, card_version))
        .with_hint("start all ranks with the same version");
  }
  for (End& end : card.ends) {
    const std::string_view gid = from.take(end.gid.size());
    std::copy(gid.begin(), gid.end(), end.gid.begin());
    end.queue_pair = from.integer<std::uint32_t>();
    end.first_packet = from.integer<std::uint32_t>();
    end.lid = from.integer<std::uint16_t>();
    end.mtu = from.integer<std::uint8_t>();
    end.is_ethernet = from.integer<std::uint8_t>() != 0;
  }
  if (!from.ended_well() || card.rails == 0 || card.rails > limits::verbs_rails_max) {
    return Status(StatusCode::protocol_error, "its card can't be read");
  }
  return card;
}

std::size_t Header::bytes() const noexcept {
  return kind == Kind::grant ? header_bytes_max : header_bytes;
}

void Header::encode(std::byte* to) const noexcept {
  store_little_endian(to, lane);
  store_little_endian(to + 8, number);
  store_little_endian(to + 12, consumed);
  store_little_endian(to + 16, static_cast<std::uint16_t>(kind));
  store_little_endian(to + 18, rail);
  store_little_endian(to + 20, slot);
  store_little_endian(to + 24, length);
  store_little_endian(to + 32, tag);
  store_little_endian(to + 40, offset);
  if (kind != Kind::grant) return;
  store_little_endian(to + 48, address);
  store_little_endian(to + 56, key);
  store_little_endian(to + 60, std::uint32_t{0});
}

Result<Header> Header::decode(const std::byte* from, std::size_t available) {
  Header header;
  if (available >= header_bytes) {
    header.lane = load_little_endian<std::uint64_t>(from);
    header.number = load_little_endian<std::uint32_t>(from + 8);
    header.consumed = load_little_endian<std::uint32_t>(from + 12);
    header.kind = static_cast<Kind>(load_little_endian<std::uint16_t>(from + 16));
    header.rail = load_little_endian<std::uint16_t>(from + 18);
    header.slot = load_little_endian<std::uint32_t>(from + 20);
    header.length = load_little_endian<std::uint64_t>(from + 24);
    header.tag = load_little_endian<std::uint64_t>(from + 32);
    header.offset = load_little_endian<std::uint64_t>(from + 40);
  }
  const bool is_known = header.kind >= Kind::data && header.kind <= Kind::close_lanes;
  const std::uint64_t payload = header.kind == Kind::data ? header.length : 0;
  if (available < header_bytes || !is_known || available != header.bytes() + payload) {
    return Status(StatusCode::protocol_error,
                  fmt::format("a message of {} bytes can't be read", available));
  }
  if (header.kind == Kind::grant) {
    header.address = load_little_endian<std::uint64_t>(from + 48);
    header.key = load_little_endian<std::uint32_t>(from + 56);
  }
  return header;
}

}  // namespace hocket::verbs
