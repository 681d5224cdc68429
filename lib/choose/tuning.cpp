#include "choose/tuning.hpp"

#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "choose/parameters.hpp"

namespace hocket::choose {
namespace {

constexpr std::string_view first_line = "hocket-tuning 1";

class Parser {
 public:
  Parser(std::string_view source, const Network& base) : source_(source), tuning_{base} {}

  Status read(std::string_view line) {
    ++number_;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) return {};
    if (std::exchange(has_begun_, true)) return read_entry(line);
    return line == first_line ? Status() : refuse_beginning(line);
  }

  Result<Tuning> finish() && {
    if (!has_begun_) {
      return Status(StatusCode::invalid_argument,
                    fmt::format("{}: a tuning file begins with {}; this one is empty", source_,
                                quote(first_line)));
    }
    if (Status status = check_network(tuning_.network); !status.ok()) {
      return Status(status.code(), fmt::format("{}: {}", source_, status.what()));
    }
    return std::move(tuning_);
  }

 private:
  [[nodiscard]] std::string place() const { return fmt::format("{}, line {}", source_, number_); }

  [[nodiscard]] Status refuse(std::string_view why) const {
    return {StatusCode::invalid_argument, fmt::format("{}: {}", place(), why)};
  }
  [[nodiscard]] Status refuse(const Status& why) const {
    return refuse(why.what()).with_hint(std::string(why.hint()));
  }
  [[nodiscard]] Status refuse_beginning(std::string_view line) const {
    if (line.starts_with("hocket-tuning ")) {
      return refuse(fmt::format("{} is of another version: this Hocket reads {}", quote(line),
                                quote(first_line)));
    }
    return refuse(
        fmt::format("a tuning file begins with {}, not with {}", quote(first_line), quote(line)));
  }

  Status read_entry(std::string_view line) {
    std::string_view value = line;
    const std::string_view name = trimmed(take_until(value, "="));
    value = trimmed(value);
    if (name == "network") return read_network(value);
    constexpr std::string_view measured = "measured ";
    if (name.starts_with(measured)) return read_measured(name.substr(measured.size()), value);
    const std::size_t dot = name.find('.');
    if (dot != name.npos) return read_number(name.substr(0, dot), name.substr(dot + 1), value);
    auto rules = parse_rules(line, place());
    if (!rules.ok()) return rules.status();
    for (Rule& rule : *rules) tuning_.rules.push_back(std::move(rule));
    return {};
  }

  Status read_measured(std::string_view what, std::string_view value) {
    const std::string_view which = take_until(what, " ");
    const auto rules = parse_rules(fmt::format("{}={}", which, trimmed(what)), place());
    if (!rules.ok()) return rules.status();
    const Rule& rule = rules->front();
    const auto time = parse_duration(value);
    if (!time || rule.bytes.first != rule.bytes.last || rule.ranks.first != rule.ranks.last) {
      return refuse("what was measured is written as measured all_reduce:1M@4 ring = 1.2ms");
    }
    tuning_.measured.push_back({.algorithm = rule.algorithm,
                                .pieces = rule.pieces,
                                .bytes = rule.bytes.first,
                                .ranks = rule.ranks.first,
                                .seconds = std::chrono::duration<double>(*time).count()});
    return {};
  }

  Status read_network(std::string_view name) {
    if (has_numbers_) return refuse("the network stands before those numbers that it differs in");
    const auto found = find_preset(name);
    if (!found.ok()) return refuse(found.status());
    tuning_.network = *found;
    return {};
  }

  Status read_number(std::string_view of, std::string_view name, std::string_view value) {
    if (of != "network") {
      return refuse(fmt::format("{} is nothing that has a {}; network?", quote(of), quote(name)));
    }
    has_numbers_ = true;
    const Status status = set_parameter(tuning_.network, name, value);
    return status.ok() ? status : refuse(status);
  }

  std::string_view source_;
  std::size_t number_ = 0;  // of the line, from 1
  bool has_begun_ = false;
  bool has_numbers_ = false;
  Tuning tuning_;
};

}  // namespace

Result<Tuning> parse_tuning(std::string_view text, std::string_view source, const Network& base) {
  Parser parser(source, base);
  while (!text.empty()) {
    if (Status status = parser.read(take_until(text, "\n")); !status.ok()) return status;
  }
  return std::move(parser).finish();
}

}  // namespace hocket::choose
