#include "integration/collectives/mistakes.hpp"

#include <array>
#include <chrono>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace hocket::testing {
namespace {

class Mistakes {
 public:
  Mistakes(Communicator& world, Report& report)
      : world_(world), report_(report), size_(static_cast<std::size_t>(world.size())) {}

  void run() {
    kinds_and_types();
    counts();
    memory();
    pieces();
    reductions();
    spans();
    groups();
  }

 private:
  /// Of u8, with memory that is large enough.
  [[nodiscard]] Collective of(CollectiveKind kind) {
    return {.kind = kind, .in = in_.data(), .out = out_.data(), .count = 4};
  }

  template <class Mistake>
  void refused(Mistake mistake, StatusCode code, const std::string& words) {
    try {
      mistake();
      report_.add(fmt::format("not refused: {}", words));
    } catch (const Error& error) {
      const std::string text = error.what();
      report_.expect(error.code() == code && text.find(words) != std::string::npos,
                     fmt::format("'{}' is refused with: {}", words, text));
    }
  }

  /// By each way to begin it, and with its name.
  void refused(const Collective& wrong, const std::string& words,
               StatusCode code = StatusCode::invalid_argument) {
    refused([&] { world_.run(wrong); }, code, words);
    refused([&] { static_cast<void>(world_.start(wrong)); }, code, words);
    refused([&] { static_cast<void>(world_.prepare(wrong)); }, code, words);
    refused([&] { world_.run(wrong); }, code, std::string(name(wrong.kind)));
  }

  void kinds_and_types() {
    refused(of(static_cast<CollectiveKind>(99)), "unknown kind");
    Collective wrong = of(CollectiveKind::all_reduce);
    wrong.type = static_cast<DataType>(99);
    refused(wrong, "unknown data type");
    for (const int root : {-1, static_cast<int>(size_)}) {
      wrong = of(CollectiveKind::broadcast);
      wrong.root = root;
      refused(wrong, fmt::format("root {} is none of {} ranks", root, size_));
    }
    wrong = of(CollectiveKind::barrier);
    wrong.options.timeout = std::chrono::nanoseconds(-1);
    refused(wrong, "the timeout is below zero");
    for (const int kind : {-1, 5}) {
      wrong = of(CollectiveKind::all_reduce);
      wrong.options.memory = static_cast<MemoryKind>(kind);
      refused(wrong, fmt::format("unknown kind of memory: {}", kind));
    }
  }

  void counts() {
    const std::vector<std::size_t> right(size_, 1);
    const std::vector<std::size_t> more(size_ + 2, 1);
    Collective wrong = of(CollectiveKind::all_reduce);
    wrong.counts = right;
    refused(wrong, "no parts that may differ");
    wrong = of(CollectiveKind::all_gather);
    wrong.counts = more;
    refused(wrong, fmt::format("{} counts for {} ranks", size_ + 2, size_));
    wrong = of(CollectiveKind::all_to_all);
    wrong.counts = right;
    refused(wrong, fmt::format("0 counts of parts from ranks, not {}", size_));
    wrong = of(CollectiveKind::all_gather);
    wrong.count = SIZE_MAX / 2 + 1;
    refused(wrong, "elements do not fit in memory");
    wrong.type = DataType::c128;
    wrong.count = SIZE_MAX / 16 / size_;
    refused(wrong, "elements do not fit in memory");
  }

  void memory() {
    Collective wrong = of(CollectiveKind::all_reduce);
    wrong.in = nullptr;
    refused(wrong, "a null pointer for 4 elements");
    wrong = of(CollectiveKind::all_gather);
    wrong.out = nullptr;
    refused(wrong, fmt::format("a null pointer for {} elements", 4 * size_));
    wrong = of(CollectiveKind::all_reduce);
    wrong.out = in_.data() + 1;
    refused(wrong, "in and out overlap");
    wrong = of(CollectiveKind::all_gather);
    wrong.in = out_.data() + 4 * world_.rank() + 1;
    refused(wrong, "in and out overlap");
    wrong = of(CollectiveKind::all_to_all);
    wrong.out = in_.data();
    refused(wrong, "can't be in place");
  }

  void pieces() {
    const std::array<Piece, 2> right = {Piece{in_.data(), 1}, Piece{in_.data() + 2, 3}};
    const std::array<Piece, 1> null = {Piece{nullptr, 4}};
    Collective wrong = of(CollectiveKind::reduce);
    wrong.pieces = right;
    refused(wrong, "can't be of pieces in place");
    wrong.kind = CollectiveKind::all_reduce;
    refused(wrong, "both pieces and a buffer");
    wrong.in = wrong.out = nullptr;
    wrong.count = 3;
    refused(wrong, "its pieces are of more elements than its count");
    wrong.count = 6;
    refused(wrong, "2 elements are in no piece");
    wrong.count = 4;
    wrong.pieces = null;
    refused(wrong, "a piece with a null pointer");
  }

  void reductions() {
    Collective wrong = of(CollectiveKind::all_reduce);
    wrong.reduction.op = static_cast<ReduceOp>(77);
    refused([&] { world_.run(wrong); }, StatusCode::invalid_argument, "op");
    wrong.reduction = ReduceOp::custom;
    refused([&] { world_.run(wrong); }, StatusCode::invalid_argument, "custom");
    wrong.kind = CollectiveKind::scan;
    wrong.reduction = ReduceOp::average;
    refused(wrong, "average is of the values of all ranks", StatusCode::unsupported);
    wrong.kind = CollectiveKind::all_reduce;
    wrong.reduction = ReduceOp::bit_and;
    wrong.type = DataType::f32;
    refused(wrong, "bit_and", StatusCode::unsupported);
    wrong.type = DataType::i32;
    wrong.reduction = ReduceOp::premul_sum;
    wrong.reduction.factor = 0.5;
    refused(wrong, "0.5");
  }

  void spans() {
    std::array<int, 4> four = {};
    std::array<int, 5> five = {};
    const auto wrong = StatusCode::invalid_argument;
    refused([&] { world_.run(Collective::all_reduce(four, five)); }, wrong, "different sizes");
    refused([&] { world_.run(Collective::all_to_all(four, five, 1)); }, wrong, "different sizes");
    refused([&] { world_.run(Collective::exscan(four, five)); }, wrong, "different sizes");
    refused([&] { world_.run(Collective::all_gather(four, five)); }, wrong, "no multiple");
    refused([&] { static_cast<void>(wait_any(std::span<Work>())); }, wrong, "no works");
  }

  void groups() {
    const int size = static_cast<int>(size_);
    const int beyond[] = {0, size};
    const int below[] = {-3};
    const int twice[] = {0, 0};
    const auto wrong = StatusCode::invalid_argument;
    refused([&] { static_cast<void>(world_.group(beyond)); }, wrong,
            fmt::format("rank {} is none of", size));
    refused([&] { static_cast<void>(world_.group(below)); }, wrong, "rank -3 is none of");
    refused([&] { static_cast<void>(world_.group(twice)); }, wrong, "rank 0 is named twice");
  }

  Communicator& world_;
  Report& report_;
  std::size_t size_;
  std::array<std::byte, 256> in_ = {};
  std::array<std::byte, 256> out_ = {};
};

}  // namespace

void try_mistakes(Communicator& world, Report& report) {
  Mistakes(world, report).run();
  std::vector<int> values(5, 1);
  world.all_reduce(values);
  report.expect(values[4] == world.size(), "after mistakes an operation gives something else");
}

}  // namespace hocket::testing
