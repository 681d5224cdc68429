#include "health/question.hpp"

#include "wire/fields.hpp"

namespace hocket::health {

void encode(const Question& question, std::string& message) {
  wire::FieldWriter writer(message);
  writer.integer(question.from);
  writer.integer(question.to);
  writer.integer(question.communicator);
  writer.integer(question.index);
  writer.integer(question.tag);
  writer.integer(question.number);
  writer.integer(static_cast<std::uint64_t>(question.age.count()));
}

Result<Question> decode_question(std::string_view bytes) {
  wire::FieldReader reader(bytes);
  Question question;
  question.from = reader.integer<std::uint32_t>();
  question.to = reader.integer<std::uint32_t>();
  question.communicator = reader.integer<std::uint64_t>();
  question.index = reader.integer<std::uint64_t>();
  question.tag = reader.integer<std::uint64_t>();
  question.number = reader.integer<std::uint64_t>();
  question.age = Duration(static_cast<std::int64_t>(reader.integer<std::uint64_t>()));
  if (reader.ended_well()) return question;
  return Status(StatusCode::protocol_error, "another rank sent a question that can't be read")
      .with_hint("do all ranks use the same version of Hocket?");
}

}  // namespace hocket::health
