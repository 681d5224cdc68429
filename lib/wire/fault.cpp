#include "wire/fault.hpp"

#include <cstdint>

#include <fmt/format.h>

#include "wire/fields.hpp"

namespace hocket::wire {

std::string encode_fault(const Status& fault) {
  std::string bytes;
  FieldWriter writer(bytes);
  writer.integer(static_cast<std::uint32_t>(fault.code()));
  writer.integer(static_cast<std::uint32_t>(fault.peer()));
  writer.integer(static_cast<std::uint32_t>(fault.system_error()));
  writer.text(fault.what());
  writer.text(fault.hint());
  return bytes;
}

Status decode_fault(std::string_view bytes) {
  FieldReader reader(bytes);
  const auto code = static_cast<StatusCode>(reader.integer<std::uint32_t>());
  const auto peer = static_cast<int>(reader.integer<std::uint32_t>());
  const auto system_error = static_cast<int>(reader.integer<std::uint32_t>());
  const std::string what(reader.text());
  const std::string hint(reader.text());
  if (!reader.ended_well() || name(code) == "unknown" || code == StatusCode::ok) {
    return Status(StatusCode::protocol_error, "another rank tells of a fault that can't be read")
        .with_hint("do all ranks use the same version of Hocket?");
  }
  return Status(code, what).with_peer(peer).with_system_error(system_error).with_hint(hint);
}

Status fault_of(int rank, std::string_view process, const Status& fault) {
  return Status(fault.code(),
                fmt::format("rank {} ({}) can't take part: {}", rank, process, fault.what()))
      .with_peer(rank)
      .with_system_error(fault.system_error())
      .with_hint(std::string(fault.hint()));
}

}  // namespace hocket::wire
