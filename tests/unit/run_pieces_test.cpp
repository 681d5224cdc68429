// Where the messages of an operation on pieces are.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/group.hpp"
#include "engine/run.hpp"
#include "plan/catalog.hpp"
#include "plan/layout.hpp"
#include "support/catch.hpp"

namespace hocket::testing {
namespace {

using engine::Binding;
using engine::Group;
using engine::Program;
using engine::Run;
using engine::Task;
using engine::Work;
using plan::Operation;

/// Rank 1 of four, with its task. Elements are bytes.
struct Case {
  Case(Operation operation, std::string_view algorithm, std::uint64_t count)
      : problem{.operation = operation, .size = 4},
        program(plan::build(*plan::find_algorithm(operation, algorithm), problem, 1)),
        binding(program, plan::even_sizes(problem, count), 1,
                std::vector<ChannelId>(program.ports().size())) {
    task.binding = &binding;
    task.group = &group;
    task.work = &work;
  }

  void begin() { run.begin(task, std::uint64_t{1} << 20); }
  void begin(std::span<const Piece> in, std::vector<std::byte>& out) {
    task.in_pieces = in;
    task.out = out.data();
    task.pieces_are_apart = true;
    begin();
  }
  [[nodiscard]] std::vector<TransportOp> messages() const {
    std::vector<TransportOp> all;
    for (std::uint32_t step = 0; step < run.code.size(); ++step) {
      if (!run.code[step].is_message) continue;
      TransportOp& op = all.emplace_back();
      run.fill_parts(op, step, 0, run.code[step].bytes);
    }
    return all;
  }

  plan::Problem problem;
  Program program;
  Binding binding;
  Group group;
  Work work;
  Task task;
  Run run{0};
};

std::vector<Piece> pieces_of(std::vector<std::vector<std::byte>>& memory) {
  std::vector<Piece> pieces;
  for (std::vector<std::byte>& each : memory) pieces.push_back({each.data(), each.size()});
  return pieces;
}

bool is_inside(const MemoryPart& part, const std::vector<std::vector<std::byte>>& memory) {
  return std::ranges::any_of(memory, [&](const std::vector<std::byte>& each) {
    return part.data >= each.data() && part.data + part.bytes <= each.data() + each.size();
  });
}

std::vector<std::vector<std::byte>> blocks(std::size_t count, std::size_t bytes) {
  return std::vector<std::vector<std::byte>>(count, std::vector<std::byte>(bytes));
}

}  // namespace

TEST_CASE("a piece for each rank is sent from and received into where it lies") {
  auto sent = blocks(4, 5000);
  auto received = blocks(4, 5000);
  const auto in = pieces_of(sent);
  const auto out = pieces_of(received);
  Case all(Operation::all_to_all, "pairwise", 5000);
  all.task.in_pieces = in;
  all.task.out_pieces = out;
  all.task.pieces_are_apart = true;
  all.begin();
  CHECK(all.run.is_scattered);
  const auto messages = all.messages();
  REQUIRE(messages.size() == 6);
  for (const TransportOp& op : messages) {
    CHECK(is_inside(op.first, sent) != is_inside(op.first, received));
    CHECK(op.first.bytes == 5000);
    CHECK(op.rest.bytes == 0);
  }
}

TEST_CASE("a message of two pieces has two parts") {
  auto sent = blocks(2, 9000);
  sent[1].resize(7000);
  const auto in = pieces_of(sent);
  std::vector<std::byte> out(16000);
  Case all(Operation::all_to_all, "pairwise", 4000);
  all.begin(in, out);
  CHECK(all.run.is_scattered);
  std::size_t of_two = 0;
  for (const TransportOp& op : all.messages()) {
    if (op.rest.bytes == 0) continue;
    ++of_two;
    CHECK(op.first.bytes + op.rest.bytes == 4000);
    CHECK(is_inside(op.first, sent));
    CHECK(is_inside(op.rest, sent));
  }
  CHECK(of_two == 1);  // to rank 2
}

TEST_CASE("pieces that are many in a message, or small, are gathered") {
  const auto [pieces, bytes] = GENERATE(std::pair(std::size_t{40}, std::size_t{500}),
                                        std::pair(std::size_t{4}, std::size_t{100}));
  auto sent = blocks(pieces, bytes);
  const auto in = pieces_of(sent);
  std::vector<std::byte> out(pieces * bytes);
  Case all(Operation::all_to_all, "pairwise", pieces * bytes / 4);
  all.begin(in, out);
  CHECK_FALSE(all.run.is_scattered);
  for (const TransportOp& op : all.messages()) {
    CHECK(op.rest.bytes == 0);
    CHECK_FALSE(is_inside(op.first, sent));
  }
}

TEST_CASE("pieces that overlap the other side are gathered") {
  auto memory = blocks(4, 5000);
  const auto pieces = pieces_of(memory);
  Case all(Operation::all_to_all, "pairwise", 5000);
  all.task.in_pieces = pieces;
  all.task.out_pieces = pieces;
  all.begin();
  CHECK_FALSE(all.run.is_scattered);
}

TEST_CASE("of a list in place both sides stay, or none") {
  auto memory = blocks(2, 6000);
  const auto pieces = pieces_of(memory);
  Case sum(Operation::all_reduce, "ring", 12000);
  sum.task.reduction = reduce::Reduction::make({.type = DataType::u8, .op = ReduceOp::sum}).value();
  sum.task.in_pieces = pieces;
  sum.task.out_pieces = pieces;
  sum.task.has_pieces_in_place = true;
  sum.task.pieces_are_apart = true;
  sum.begin();
  CHECK(sum.run.is_scattered);
  for (const TransportOp& op : sum.messages()) {
    if (op.kind == TransportOp::Kind::send) CHECK(is_inside(op.first, memory));
  }
}

TEST_CASE("an operation after one on pieces knows nothing of them") {
  auto sent = blocks(4, 5000);
  const auto in = pieces_of(sent);
  std::vector<std::byte> plain(20'000);
  std::vector<std::byte> out(20'000);
  Case all(Operation::all_to_all, "pairwise", 5000);
  all.begin(in, out);
  CHECK(all.run.is_scattered);
  all.task.in_pieces = {};
  all.task.in = plain.data();
  all.begin();
  CHECK_FALSE(all.run.is_scattered);
  for (const TransportOp& op : all.messages()) CHECK_FALSE(is_inside(op.first, sent));
}

}  // namespace hocket::testing
