#include "health/hello.hpp"

#include "wire/fields.hpp"

namespace hocket::health {

std::string Hello::encode() const {
  std::string bytes;
  wire::FieldWriter writer(bytes);
  writer.integer(version);
  writer.integer(epoch);
  writer.integer(size);
  writer.integer(rank);
  writer.integer(way);
  return bytes + instance;
}

Hello Hello::decode(std::string_view bytes) {
  wire::FieldReader reader(bytes);
  Hello hello;
  hello.version = reader.integer<std::uint32_t>();
  hello.epoch = reader.integer<std::uint64_t>();
  hello.size = reader.integer<std::uint32_t>();
  hello.rank = reader.integer<std::uint32_t>();
  hello.way = reader.integer<std::uint32_t>();
  hello.instance = reader.take(instance_bytes);
  return hello;
}

Status check_answer(std::string_view answer) {
  switch (static_cast<Welcome>(answer.front())) {
    case Welcome::welcome:
      return {};
    case Welcome::version_differs:
      return Status(StatusCode::mismatch, "it uses another version of Hocket");
    case Welcome::other_world:
      return Status(StatusCode::mismatch, "it is of another world");
    default:
      return Status(StatusCode::already_exists, "it does not await us");
  }
}

}  // namespace hocket::health
