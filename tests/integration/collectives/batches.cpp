#include "integration/collectives/batches.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

namespace hocket::testing {
namespace {

constexpr double untouched = -1;

/// Vectors that lie apart in one memory, with an element between them that belongs to none.
class Batch {
 public:
  explicit Batch(const std::vector<std::size_t>& counts) {
    std::size_t all = 0;
    for (const std::size_t count : counts) all += count + 1;
    memory_.assign(all, untouched);
    double* next = memory_.data();
    for (const std::size_t count : counts) {
      pieces_.push_back({next, count});
      next += count + 1;
    }
  }

  /// Element i of all the vectors in a row.
  template <class Value>
  void fill(Value value) {
    std::size_t i = 0;
    for (const Piece& each : pieces_) {
      for (double& element : elements(each)) element = value(i++);
    }
  }
  template <class Value>
  [[nodiscard]] bool is(Value value) const {
    std::size_t i = 0;
    return std::ranges::all_of(pieces_, [&](const Piece& each) {
      const auto ours = elements(each);
      const bool is_right = std::ranges::all_of(ours, [&](double e) { return e == value(i++); });
      return is_right && ours.data()[ours.size()] == untouched;
    });
  }
  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

 private:
  [[nodiscard]] static std::span<double> elements(const Piece& piece) {
    return {static_cast<double*>(piece.data), piece.count};
  }

  std::vector<double> memory_;
  std::vector<Piece> pieces_;
};

class Batches {
 public:
  Batches(Communicator& world, Report& report) : world_(world), report_(report) {}

  void run(const std::vector<std::size_t>& counts) {
    Batch batch(counts);
    const auto name = [&](std::string_view what) {
      return fmt::format("{} of {} pieces", what, counts.size());
    };
    const auto sum = [&](std::size_t i) { return size() * value(i) + size() * (size() - 1) / 2; };
    const auto mean = [&](std::size_t i) { return sum(i) / size(); };
    const Collective add = Collective::all_reduce<double>(batch.pieces());
    Prepared prepared = world_.prepare(add);
    const auto check = [&](std::string_view what, auto call, auto expected) {
      batch.fill([&](std::size_t i) { return value(i) + world_.rank(); });
      call();
      report_.expect(batch.is(expected), name(what));
    };
    check(
        "all_reduce", [&] { world_.run(add); }, sum);
    check(
        "started all_reduce", [&] { world_.start(add).wait(); }, sum);
    check(
        "prepared all_reduce", [&] { prepared.run(); }, sum);
    check(
        "average",
        [&] { world_.run(Collective::all_reduce<double>(batch.pieces(), ReduceOp::average)); },
        mean);
    for (int root = 0; root < world_.size(); ++root) {
      const auto roots = [&](std::size_t i) { return value(i) + root; };
      check(
          "broadcast", [&] { world_.run(Collective::broadcast<double>(batch.pieces(), root)); },
          roots);
    }
  }

  /// The list of pieces is the caller's again at once; those behind one that is under way, too.
  void run_several() {
    constexpr int count = 4;
    std::vector<std::unique_ptr<Batch>> batches;
    std::vector<Work> works;
    std::vector<Piece> pieces;
    for (int i = 0; i < count; ++i) {
      const std::vector<std::size_t> counts = {3, 100'000, 5};
      batches.push_back(std::make_unique<Batch>(counts));
      batches.back()->fill([](std::size_t each) { return value(each); });
      pieces = batches.back()->pieces();
      works.push_back(world_.start(Collective::all_reduce<double>(pieces)));
      std::ranges::fill(pieces, Piece{&works, SIZE_MAX});
    }
    pieces = batches.front()->pieces();
    wait_all(works);
    Prepared prepared = world_.prepare(Collective::all_reduce<double>(pieces));
    pieces.clear();
    prepared.run();
    for (int i = 0; i < count; ++i) {
      const double factor = i == 0 ? size() * size() : size();
      report_.expect(batches[static_cast<std::size_t>(i)]->is(
                         [&](std::size_t each) { return factor * value(each); }),
                     fmt::format("batch {} of several at once", i));
    }
  }

  /// Ranks may cut the same vector each as it likes.
  void run_cut_differently() {
    const auto first = static_cast<std::size_t>(world_.rank()) * 3;
    Batch batch({first, 100 - first});
    batch.fill([](std::size_t i) { return value(i); });
    world_.run(Collective::all_reduce<double>(batch.pieces()));
    report_.expect(batch.is([&](std::size_t i) { return size() * value(i); }),
                   "a batch that ranks cut differently");
  }

 private:
  [[nodiscard]] static double value(std::size_t i) { return static_cast<double>(i % 1009); }
  [[nodiscard]] double size() const { return world_.size(); }

  Communicator& world_;
  Report& report_;
};

}  // namespace

void try_batches(Communicator& world, Report& report) {
  Batches batches(world, report);
  batches.run({0});
  batches.run({1});
  batches.run({0, 5, 0, 0, 7, 1, 0});
  batches.run({200'000, 3, 100'001});  // several segments
  batches.run({150'000, 150'001});     // two pieces, which no algorithm gathers
  std::vector<std::size_t> many(500);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = i * 7 % 41;
  batches.run(many);
  batches.run_cut_differently();
  batches.run_several();
}

/// Where there is no memory for it, the communicator fails, and nothing else.
void try_too_large_batch(Communicator& world, Report& report) {
  Communicator other = world.dup();
  std::byte bytes[5] = {};
  // Three pieces in the first message, so that they are gathered.
  const Piece pieces[] = {{&bytes[0], 1}, {&bytes[2], 1}, {&bytes[4], std::size_t{1} << 45}};
  try {
    other.run(Collective::broadcast<std::uint8_t>(pieces));
    report.add("a batch of 32 TiB is taken");
  } catch (const Error& error) {
    const bool is_ours = error.code() == StatusCode::limit_exceeded;
    report.expect(is_ours || error.code() == StatusCode::peer_lost, error.what());
  }
}

}  // namespace hocket::testing
