#include "choose/rules.hpp"

#include <algorithm>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"
#include "plan/lookup.hpp"

namespace hocket::choose {
namespace {

using plan::Operation;

Status refused(std::string_view rule, std::string_view why) {
  return Status(StatusCode::invalid_argument, fmt::format("the rule {}: {}", quote(rule), why));
}

Status refused(std::string_view rule, const Status& why) {
  return refused(rule, why.what()).with_hint(std::string(why.hint()));
}

template <class Parse>
std::optional<Span> parse_span(std::string_view text, Parse parse) {
  Span span;
  const bool is_one = text.find('-') == std::string_view::npos;
  const std::string_view first = take_until(text, "-");
  const std::string_view last = is_one ? first : text;
  const auto read = [&](std::string_view end, std::uint64_t& number) {
    if (end.empty()) return true;
    const auto parsed = parse(end);
    number = parsed.value_or(0);
    return parsed.has_value();
  };
  if (!read(first, span.first) || !read(last, span.last) || span.first > span.last) return {};
  return span;
}

std::optional<std::uint64_t> parse_count(std::string_view text) {
  const auto number = parse_integer(text);
  if (!number || *number < 0) return {};
  return static_cast<std::uint64_t>(*number);
}

/// What stands before "=": an operation, bytes, ranks.
Status parse_scope(std::string_view rule, std::string_view scope,
                   std::optional<Operation>& operation, Rule& to) {
  std::string_view ranks = scope;
  std::string_view bytes = take_until(ranks, "@");
  const auto found = plan::look_up_operation(take_until(bytes, ":"));
  if (!found.ok()) return refused(rule, found.status());
  operation = *found;
  const auto byte_span = parse_span(bytes, parse_size);
  if (!byte_span) return refused(rule, fmt::format("{} are no bytes such as 4K-1M", quote(bytes)));
  const auto rank_span = parse_span(ranks, parse_count);
  if (!rank_span) return refused(rule, fmt::format("{} are no ranks such as 2-8", quote(ranks)));
  to.bytes = *byte_span;
  to.ranks = *rank_span;
  return {};
}

Status parse_rule(std::string_view text, std::vector<Rule>& rules) {
  Rule rule = {.text = std::string(text)};
  std::optional<Operation> operation;
  std::string_view name = text;
  if (text.find('=') != std::string_view::npos) {
    Status status = parse_scope(text, trimmed(take_until(name, "=")), operation, rule);
    if (!status.ok()) return status;
  }
  std::string_view pieces = trimmed(name);
  const bool has_pieces = pieces.find('/') != std::string_view::npos;
  name = take_until(pieces, "/");
  if (has_pieces) {
    const auto count = parse_count(pieces);
    if (!count || *count < 1 || *count > limits::plan_pieces_max) {
      return refused(text, fmt::format("{} is no number of pieces from 1 to {}", quote(pieces),
                                       limits::plan_pieces_max));
    }
    rule.pieces = static_cast<std::uint32_t>(*count);
  }
  if (name.empty()) return refused(text, "it names no algorithm");
  const auto algorithms = plan::look_up_algorithms(operation, name);
  if (!algorithms.ok()) return refused(text, algorithms.status());
  for (const plan::Algorithm* each : *algorithms) {
    rule.algorithm = each;
    rules.push_back(rule);
  }
  return {};
}

Status add_rule(std::string_view text, std::string_view source, std::vector<Rule>& rules) {
  const std::size_t first = rules.size();
  Status status = parse_rule(text, rules);
  if (!status.ok() && !source.empty()) {
    return Status(status.code(), fmt::format("{}: {}", source, status.what()))
        .with_hint(std::string(status.hint()));
  }
  for (std::size_t i = first; i < rules.size(); ++i) rules[i].source = source;
  return status;
}

}  // namespace

Result<std::vector<Rule>> parse_rules(std::string_view text, std::string_view source) {
  std::vector<Rule> rules;
  while (!text.empty()) {
    std::string_view line = take_until(text, "\n");
    line = line.substr(0, line.find('#'));
    while (!line.empty()) {
      const std::string_view rule = trimmed(take_until(line, ","));
      if (rule.empty()) continue;
      if (Status status = add_rule(rule, source, rules); !status.ok()) return status;
    }
  }
  return rules;
}

}  // namespace hocket::choose
