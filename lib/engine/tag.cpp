#include "engine/tag.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include <fmt/format.h>

namespace hocket::engine {
namespace {

struct Field {
  unsigned first;
  unsigned bits;

  [[nodiscard]] constexpr std::uint64_t mask() const noexcept {
    return (std::uint64_t{1} << bits) - 1;
  }
  [[nodiscard]] constexpr std::uint64_t of(std::uint64_t tag) const noexcept {
    return tag >> first & mask();
  }
  /// Of a value, cut to what there is room for.
  [[nodiscard]] constexpr std::uint64_t put(std::uint64_t value) const noexcept {
    return (value & mask()) << first;
  }
};

namespace fields {
// Algorithm, type and op are one more than what they say, so that 0 says nothing.
constexpr Field algorithm{Tag::History::bits, 6};  // its place in the catalog, behind the history
constexpr Field type{18, 5};
constexpr Field op{23, 4};
constexpr Field root{27, 12};
// The count's upper bits, and how many are below them.
constexpr Field count_bits{39, 20};
constexpr Field count_shift{59, 5};
}  // namespace fields

const plan::Algorithm* algorithm_of(std::uint64_t tag) noexcept {
  const std::uint64_t place = fields::algorithm.of(tag);
  const bool is_known = place > 0 && place <= plan::catalog().size();
  return is_known ? &plan::catalog()[place - 1] : nullptr;
}

/// In the tag, of elements of any number of bytes. Where ranks differ in it, so do their messages.
constexpr std::uint64_t number_of_bytes = fields::type.mask() - 1;

std::string_view type_name(std::uint64_t number) noexcept {
  return name(number == number_of_bytes ? bytes_type(1) : static_cast<DataType>(number));
}

std::string describe_count(std::uint64_t tag) {
  const std::uint64_t count = fields::count_bits.of(tag) << fields::count_shift.of(tag);
  return fmt::format("{}{} element{}", fields::count_shift.of(tag) > 0 ? "about " : "", count,
                     count == 1 ? "" : "s");
}

}  // namespace

std::string describe_call(std::uint64_t tag) {
  const plan::Algorithm* const by = algorithm_of(tag);
  if (by == nullptr) return fmt::format("an operation unknown here (tag {:#x})", tag);
  std::string arguments;
  const auto add = [&](std::string_view argument) {
    if (!arguments.empty()) arguments += ", ";
    arguments += argument;
  };
  if (fields::op.of(tag) > 0) add(name(static_cast<ReduceOp>(fields::op.of(tag) - 1)));
  if (fields::type.of(tag) > 0) add(type_name(fields::type.of(tag) - 1));
  if (fields::count_bits.of(tag) > 0) add(describe_count(tag));
  if (plan::has_root(by->operation)) add(fmt::format("root {}", fields::root.of(tag)));
  return fmt::format("{}({})", plan::name(by->operation), arguments);
}

std::string_view algorithm_name(std::uint64_t tag) noexcept {
  const plan::Algorithm* const by = algorithm_of(tag);
  return by == nullptr ? std::string_view() : by->name;
}

Tag::Tag(const plan::Algorithm& algorithm, std::uint32_t root, std::uint64_t count) noexcept {
  const auto place = static_cast<std::uint64_t>(&algorithm - plan::catalog().data());
  const auto width = static_cast<unsigned>(std::bit_width(count));
  const unsigned below = width > fields::count_bits.bits ? width - fields::count_bits.bits : 0;
  bits_ = fields::algorithm.put(place + 1) | fields::root.put(root) |
          fields::count_bits.put(count >> below) | fields::count_shift.put(below);
}

Tag Tag::with(DataType of) const noexcept {
  const auto number = static_cast<std::uint64_t>(of);
  return Tag(bits_ | fields::type.put(std::min(number, number_of_bytes) + 1));
}

Tag Tag::with(ReduceOp by) const noexcept {
  return Tag(bits_ | fields::op.put(static_cast<std::uint64_t>(by) + 1));
}

Status disagreement(std::uint64_t ours, std::uint64_t theirs, std::uint32_t rank,
                    std::uint32_t peer) {
  const plan::Algorithm* const our_way = algorithm_of(ours);
  const plan::Algorithm* const their_way = algorithm_of(theirs);
  std::string our_call = describe_call(ours);
  std::string their_call = describe_call(theirs);
  std::string_view hint = same_calls_hint;
  if (our_call == their_call && our_way != their_way) {
    our_call += fmt::format(" by {}", our_way->name);
    their_call += fmt::format(" by {}", their_way->name);
    hint = "start all ranks with the same HOCKET_ALGORITHM and HOCKET_TUNING_FILE";
  } else if (our_call == their_call) {
    our_call += ", after different earlier operations";
    hint = "look for a rank that called one operation more or fewer, or in another order";
  }
  return Status(StatusCode::mismatch, fmt::format("rank {} called {}, and rank {} called {}", peer,
                                                  their_call, rank, our_call))
      .with_rank(static_cast<int>(rank))
      .with_peer(static_cast<int>(peer))
      .with_hint(std::string(hint));
}

}  // namespace hocket::engine
