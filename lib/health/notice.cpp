#include "health/notice.hpp"

#include <fmt/format.h>

#include "wire/fields.hpp"

namespace hocket::health {
namespace {

std::string in_words(std::int64_t nanoseconds) {
  const auto since_midnight = nanoseconds % 86'400'000'000'000;
  const auto milliseconds_of_day = since_midnight / 1'000'000;
  return fmt::format("{:02}:{:02}:{:02}.{:03} UTC", milliseconds_of_day / 3'600'000,
                     milliseconds_of_day / 60'000 % 60, milliseconds_of_day / 1'000 % 60,
                     milliseconds_of_day % 1'000);
}

}  // namespace

Status Notice::status() const {
  const std::string_view idle = operation.empty() ? " (it was in no operation)" : "";
  Status status =
      Status(code, fmt::format("{}; found by rank {} at {}{}", what, origin, in_words(time), idle))
          .with_step(step)
          .with_system_error(system_error)
          .with_hint(hint);
  status = std::move(status).with_peer(static_cast<int>(culprit == nobody ? origin : culprit));
  if (!operation.empty()) status = std::move(status).with_operation(operation);
  return status;
}

bool is_local_failure(StatusCode code) noexcept {
  return code != StatusCode::peer_lost && code != StatusCode::timeout &&
         code != StatusCode::mismatch && code != StatusCode::limit_exceeded &&
         code != StatusCode::aborted;
}

std::string encode(const Notice& notice) {
  std::string bytes;
  wire::FieldWriter writer(bytes);
  writer.integer(static_cast<std::uint8_t>(notice.finding));
  writer.integer(notice.origin);
  writer.integer(notice.culprit);
  writer.integer(notice.communicator);
  writer.integer(static_cast<std::uint32_t>(notice.code));
  writer.integer(static_cast<std::uint32_t>(notice.system_error));
  writer.signed_integer(notice.time);
  writer.text(notice.what);
  writer.text(notice.hint);
  writer.text(notice.operation);
  writer.integer(static_cast<std::uint32_t>(notice.step));
  writer.integer(notice.awaited);
  writer.integer(static_cast<std::uint8_t>(notice.is_second_hand ? 1 : 0));
  return bytes;
}

Result<Notice> decode_notice(std::string_view bytes) {
  wire::FieldReader reader(bytes);
  Notice notice;
  notice.finding = static_cast<Finding>(reader.integer<std::uint8_t>());
  notice.origin = reader.integer<std::uint32_t>();
  notice.culprit = reader.integer<std::uint32_t>();
  notice.communicator = reader.integer<std::uint64_t>();
  notice.code = static_cast<StatusCode>(reader.integer<std::uint32_t>());
  notice.system_error = static_cast<std::int32_t>(reader.integer<std::uint32_t>());
  notice.time = reader.signed_integer();
  notice.what = reader.text();
  notice.hint = reader.text();
  notice.operation = reader.text();
  notice.step = static_cast<std::int32_t>(reader.integer<std::uint32_t>());
  notice.awaited = reader.integer<std::uint32_t>();
  notice.is_second_hand = reader.integer<std::uint8_t>() != 0;
  const bool is_finding = notice.finding >= Finding::death && notice.finding <= Finding::failure;
  const bool lacks_rank = notice.finding != Finding::failure && notice.culprit == nobody;
  if (!reader.ended_well() || !is_finding || lacks_rank || notice.time < 0 ||
      notice.code == StatusCode::ok || name(notice.code) == "unknown") {
    return Status(StatusCode::protocol_error, "another rank sent a notice that can't be read")
        .with_hint("do all ranks use the same version of Hocket?");
  }
  return notice;
}

}  // namespace hocket::health
