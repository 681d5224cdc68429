// The methods of Communicator, with vectors, arrays and spans, in place and not; what it says of
// its ranks; memory that adapters know. Every rank runs it; `hocket run` starts them. Prints what
// is wrong, and fails then.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/hocket.hpp"

#include "integration/collectives/report.hpp"
#include "support/failure_of.hpp"

namespace {

/// An element of 12 bytes, as a program has them: a mean with its weight, to be merged.
struct Cell {
  float mean = 0;
  std::int32_t weight = 0;
  std::int32_t highest = 0;

  friend bool operator==(const Cell&, const Cell&) = default;
};
static_assert(sizeof(Cell) == 12);

void merge(void* /*context*/, void* out, const void* a, const void* b, std::size_t count,
           hocket::DataType type) {
  if (size_of(type) != sizeof(Cell)) std::abort();
  for (std::size_t i = 0; i < count; ++i) {
    std::array<Cell, 2> cells;
    std::memcpy(&cells[0], static_cast<const std::byte*>(a) + i * sizeof(Cell), sizeof(Cell));
    std::memcpy(&cells[1], static_cast<const std::byte*>(b) + i * sizeof(Cell), sizeof(Cell));
    const Cell merged = {.mean = cells[0].mean + cells[1].mean,
                         .weight = cells[0].weight + cells[1].weight,
                         .highest = std::max(cells[0].highest, cells[1].highest)};
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(Cell), &merged, sizeof(Cell));
  }
}

/// The function x → factor · x + term. Composing two of them is associative, but not commutative.
struct Function {
  std::uint32_t factor = 1;
  std::uint32_t term = 0;

  friend bool operator==(const Function&, const Function&) = default;
};

Function operator*(const Function& left, const Function& right) {
  return {left.factor * right.factor, left.factor * right.term + left.term};
}

void compose(void* /*context*/, void* out, const void* a, const void* b, std::size_t count,
             hocket::DataType /*type*/) {
  for (std::size_t i = 0; i < count; ++i) {
    std::array<Function, 2> parts;
    std::memcpy(&parts[0], static_cast<const std::byte*>(a) + i * sizeof(Function),
                sizeof(Function));
    std::memcpy(&parts[1], static_cast<const std::byte*>(b) + i * sizeof(Function),
                sizeof(Function));
    const Function composed = parts[0] * parts[1];
    std::memcpy(static_cast<std::byte*>(out) + i * sizeof(Function), &composed, sizeof(Function));
  }
}

}  // namespace

template <>
struct hocket::DataTypeOf<Function> {
  static constexpr hocket::DataType value = hocket::bytes_type(sizeof(Function));
};

template <>
struct hocket::DataTypeOf<Cell> {
  static constexpr hocket::DataType value = hocket::bytes_type(sizeof(Cell));
};

namespace {

using hocket::Communicator;
using hocket::InvalidArgument;
using hocket::Memory;
using hocket::ReduceOp;
using hocket::testing::Report;
using Values = std::vector<std::int64_t>;

class Methods {
  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

 public:
  Methods(Communicator& world, Report& report)
      : world_(world), report_(report), rank_(world.rank()), size_(world.size()) {}

  void reduce_them() {
    const std::array<std::int64_t, 3> own = {rank_, rank_ + 1, 1};
    const Values sum = {first_sum(size_), first_sum(size_) + size_, size_};
    Values out(3);
    world_.all_reduce(own, out);
    expect(out == sum, "all_reduce");
    Values values(own.begin(), own.end());
    world_.all_reduce(values);
    expect(values == sum, "all_reduce in place");
    values.assign(own.begin(), own.end());
    world_.all_reduce(std::span(values).first(1), ReduceOp::max);
    expect(values == Values{size_ - 1, rank_ + 1, 1}, "all_reduce of a part of a vector");
    values.assign(own.begin(), own.end());
    out.assign(3, -1);
    world_.reduce(values, out, {}, 1);
    expect(rank_ == 1 ? out == sum : out == Values(3, -1), "reduce");
    world_.reduce(values, ReduceOp::sum, 1);
    expect(rank_ == 1 ? values == sum : values == Values(own.begin(), own.end()),
           "reduce in place");
    std::int64_t before[] = {-1, -1, -1};
    world_.exscan(own, before);
    expect(rank_ == 0 ? before[0] == -1 : before[2] == rank_, "exscan");
    values.assign(own.begin(), own.end());
    world_.scan(values);
    expect(values == Values{first_sum(rank_ + 1), first_sum(rank_ + 1) + rank_ + 1, rank_ + 1},
           "scan in place");
    world_.scan(own, out);
    expect(out == values, "scan");
    values.assign(own.begin(), own.end());
    world_.exscan(values);
    expect(rank_ == 0 || values[2] == rank_, "exscan in place");
  }

  void gather_them() {
    const Values own = part_of(rank_);
    Values all(whole_.size());
    world_.all_gather(own, all);
    expect(all == whole_, "all_gather");
    expect_in_place([&](Values& values) { world_.all_gather(values); }, whole_, "all_gather");
    all.assign(whole_.size(), -1);
    world_.gather(own, all, 1);
    expect(all == (rank_ == 1 ? whole_ : Values(whole_.size(), -1)), "gather");
    if (rank_ == 1) {
      expect_in_place([&](Values& values) { world_.gather(values, 1); }, whole_, "gather");
    } else {
      Values values = own;
      world_.gather(values, 1);
      expect(values == own, "gather in place, where nothing comes");
    }
    Values part(2);
    world_.scatter(
        rank_ == 1 ? std::span<const std::int64_t>(whole_) : std::span<const std::int64_t>(), part,
        1);
    expect(part == own, "scatter");
    Values values = rank_ == 1 ? whole_ : Values(2);
    world_.scatter(values, 1);
    expect(values == (rank_ == 1 ? whole_ : own), "scatter in place");
    part.assign(2, 0);
    world_.reduce_scatter(whole_, part);
    expect(part == Values{own[0] * size_, own[1] * size_}, "reduce_scatter");
    values = whole_;
    world_.reduce_scatter(values);
    expect(values[index(rank_) * 2] == own[0] * size_, "reduce_scatter in place");
    values = rank_ == 1 ? own : Values(2);
    world_.broadcast(values, 1);
    expect(values == part_of(1), "broadcast");
    Values from(index(size_), rank_);
    Values to(index(size_));
    world_.all_to_all(from, to);
    Values ranks(index(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
    expect(to == ranks, "all_to_all");
    world_.barrier();
  }

  /// Rank r has r + 1 elements, which are its number.
  void gather_uneven() {
    std::vector<std::size_t> counts(index(size_));
    std::iota(counts.begin(), counts.end(), 1);
    Values uneven;
    for (int rank = 0; rank < size_; ++rank) uneven.insert(uneven.end(), counts[index(rank)], rank);
    const Values own(counts[index(rank_)], rank_);
    Values all(uneven.size());
    world_.all_gather_v(own, all, counts);
    expect(all == uneven, "all_gather_v");
    all.assign(uneven.size(), -1);
    world_.gather_v(own, all, counts, 0);
    expect(rank_ != 0 || all == uneven, "gather_v");
    Values part(own.size(), -1);
    world_.scatter_v(uneven, part, counts, 0);
    expect(part == own, "scatter_v");
    world_.reduce_scatter_v(uneven, part, counts);
    expect(part == Values(own.size(), std::int64_t{rank_} * size_), "reduce_scatter_v");
    const std::vector<std::size_t> from(index(size_), counts[index(rank_)]);
    Values came(from[0] * index(size_));
    Values sent;
    for (int rank = 0; rank < size_; ++rank) sent.insert(sent.end(), counts[index(rank)], rank_);
    world_.all_to_all_v(sent, came, counts, from);
    expect(came.front() == 0 && came.back() == size_ - 1, "all_to_all_v");
  }

  /// With a hole of one element behind each piece, which nobody touches.
  class Holes {
   public:
    explicit Holes(const std::vector<std::size_t>& counts, std::int64_t value = hole) {
      std::size_t size = 0;
      for (const std::size_t each : counts) size += each + 1;
      memory_.assign(size, hole);
      std::int64_t* next = memory_.data();
      for (const std::size_t each : counts) {
        pieces_.push_back({.data = next, .count = each});
        std::fill_n(next, each, value);
        next += each + 1;
      }
    }
    [[nodiscard]] std::span<const hocket::Piece> pieces() const { return pieces_; }
    [[nodiscard]] std::span<std::int64_t> piece(int i) {
      const hocket::Piece& piece = pieces_.at(index(i));
      return {static_cast<std::int64_t*>(piece.data), piece.count};
    }
    [[nodiscard]] bool are_holes_whole() const {
      return std::ranges::all_of(pieces_, [](const hocket::Piece& each) {
        return static_cast<const std::int64_t*>(each.data)[each.count] == hole;
      });
    }

   private:
    static constexpr std::int64_t hole = -77;
    Values memory_;
    std::vector<hocket::Piece> pieces_;
  };

  /// Lists with a piece for each rank, of 1, 2, 3, … elements, and large ones.
  void use_lists(std::size_t scale) {
    std::vector<std::size_t> counts;
    for (int rank = 0; rank < size_; ++rank) counts.push_back(index(rank + 1) * scale);
    const Values own(counts[index(rank_)], rank_);
    hocket::Collective it = {.type = hocket::DataType::i64, .counts = counts};

    it.kind = hocket::CollectiveKind::all_gather;
    Holes all(counts);
    it.in = own.data();
    it.out_pieces = all.pieces();
    world_.run(it);
    expect_ranks(all, "all_gather to a list");
    world_.start(it).wait();
    expect_ranks(all, "all_gather to a list, in the background");

    it.kind = hocket::CollectiveKind::gather;
    Holes gathered(counts);
    it.out_pieces = rank_ == 0 ? gathered.pieces() : std::span<const hocket::Piece>();
    world_.run(it);
    if (rank_ == 0) expect_ranks(gathered, "gather to a list");

    it.kind = hocket::CollectiveKind::scatter;
    Values part(own.size(), -1);
    it.in = nullptr;
    it.in_pieces = rank_ == 0 ? all.pieces() : std::span<const hocket::Piece>();
    it.out = part.data();
    it.out_pieces = {};
    world_.run(it);
    expect(part == own, "scatter from a list");

    it.kind = hocket::CollectiveKind::reduce_scatter;
    it.in_pieces = all.pieces();
    hocket::Prepared prepared = world_.prepare(it);
    for (int i = 0; i < 3; ++i) {
      part.assign(own.size(), -1);
      prepared.run();
      expect(part == Values(own.size(), std::int64_t{rank_} * size_), "reduce_scatter from a list");
    }

    it.kind = hocket::CollectiveKind::all_to_all;
    const std::vector<std::size_t> from(index(size_), counts[index(rank_)]);
    Holes sent(counts, rank_);
    Holes came(from);
    it.counts_from = from;
    it.in_pieces = sent.pieces();
    it.out = nullptr;
    it.out_pieces = came.pieces();
    world_.run(it);
    expect_ranks(came, "all_to_all between lists");

    // Pieces that end elsewhere than the parts, and one list that is read and written.
    Holes halves({scale, scale}, rank_ + 1);
    it = {.kind = hocket::CollectiveKind::scan,
          .type = hocket::DataType::i64,
          .count = 2 * scale,
          .in_pieces = halves.pieces(),
          .out_pieces = halves.pieces()};
    world_.run(it);
    expect(halves.piece(1).back() == first_sum(rank_ + 2) && halves.are_holes_whole(),
           "scan of a list to itself");
  }

  void refuse_lists() {
    Holes two({2, 2}, 1);
    Values values(4);
    hocket::Collective it = {.kind = hocket::CollectiveKind::all_reduce,
                             .type = hocket::DataType::i64,
                             .count = 5,
                             .in_pieces = two.pieces(),
                             .out_pieces = two.pieces()};
    expect(fails([&] { world_.run(it); }), "an element that is in no piece");
    it.count = 3;
    expect(fails([&] { world_.run(it); }), "more elements in pieces than there are");
    it.count = 4;
    it.in = values.data();
    expect(fails([&] { world_.run(it); }), "both pieces and a buffer");
    it.in = nullptr;
    it.pieces = two.pieces();
    expect(fails([&] { world_.run(it); }), "both pieces in place and others");
    it = {.kind = hocket::CollectiveKind::scan,
          .type = hocket::DataType::i64,
          .count = 4,
          .pieces = two.pieces()};
    expect(fails([&] { world_.run(it); }), "a scan in place");
  }

  /// Of sizes within one segment of a message, and of several that end within an element.
  void reduce_cells() {
    hocket::Reduction merging = ReduceOp::custom;
    merging.custom = merge;
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{300'000}}) {
      std::vector<Cell> cells(count);
      for (std::size_t i = 0; i < count; ++i) cells[i] = cell(i, rank_);
      Cell last = cell(count - 1, 0);
      for (int rank = 1; rank < size_; ++rank) {
        const Cell other = cell(count - 1, rank);
        merge(nullptr, &last, &last, &other, 1, hocket::data_type_of<Cell>);
      }
      std::vector<Cell> all(count * index(size_));
      world_.all_gather(cells, all);
      expect(all.back() == cell(count - 1, size_ - 1), "all_gather of cells");
      world_.all_reduce(cells, merging);
      expect(cells.back() == last, "all_reduce of cells");
      std::vector<Cell> part(count);
      world_.reduce_scatter(all, part, merging);
      expect(part.back().weight == cell(count - 1, rank_).weight * size_, "parts of cells");
      world_.broadcast(cells, 1);
      expect(cells.front().weight == part_weight(size_), "broadcast of cells");
      const int other = size_ - 1 - rank_;
      if (other == rank_) continue;
      world_.sendrecv(hocket::Message::send(cells, other), hocket::Message::recv(part, other));
      expect(part == cells, "a message of cells");
    }
    std::vector<Cell> cells(2);
    expect(hocket::testing::failure_of([&] { world_.all_reduce(cells); }).code() ==
               hocket::StatusCode::unsupported,
           "cells have no sum");
  }

  /// Small vectors, and large ones, for which other algorithms may be taken.
  void reduce_in_order() {
    hocket::Reduction composing = ReduceOp::custom;
    composing.custom = compose;
    composing.keeps_order = true;
    for (const std::size_t each : {std::size_t{1}, std::size_t{1000}, std::size_t{100'000}}) {
      const std::size_t count = each * index(size_);
      std::vector<std::vector<Function>> below(index(size_) + 1, std::vector<Function>(count));
      for (int rank = 0; rank < size_; ++rank) {
        const std::vector<Function> next = functions(count, rank);
        for (std::size_t i = 0; i < count; ++i) {
          below[index(rank) + 1][i] = below[index(rank)][i] * next[i];
        }
      }
      const std::vector<Function>& all = below.back();
      const std::vector<Function> own = functions(count, rank_);
      std::vector<Function> out(count);
      world_.all_reduce(own, out, composing);
      expect(out == all, "all_reduce in order");
      for (int root = 0; root < size_; ++root) {
        out.assign(count, {});
        world_.reduce(own, out, composing, root);
        expect(rank_ != root || out == all, "reduce in order");
      }
      std::vector<Function> part(each);
      world_.reduce_scatter(own, part, composing);
      const std::size_t begin = index(rank_) * each;
      expect(std::ranges::equal(part, std::span(all).subspan(begin, each)),
             "reduce_scatter in order");
      world_.scan(own, out, composing);
      expect(out == below[index(rank_) + 1], "scan in order");
      world_.exscan(own, out, composing);
      expect(rank_ == 0 || out == below[index(rank_)], "exscan in order");
    }
  }

  void send_them() {
    const std::array<float, 2> sent = {1.5F, static_cast<float>(rank_)};
    std::array<float, 4> room = {};
    hocket::Work sending = world_.start(hocket::Message::send(sent, (rank_ + 1) % size_, 3));
    const hocket::Received received = world_.recv(room, hocket::any_rank, 3);
    sending.wait();
    expect(received.count == 2 && room[1] == static_cast<float>(received.peer), "a message");
    if (rank_ == 0) world_.send(sent, 1);
    if (rank_ == 1) expect(world_.recv(room, 0).count == 2, "a message of one word");
  }

  void know_ranks() {
    Communicator back = world_.split(0, -rank_);
    Communicator odd = world_.split(rank_ % 2 == 0 ? 0 : 1);
    for (int rank = 0; rank < size_; ++rank) {
      expect(world_.rank_in(back, rank) == size_ - 1 - rank, "a rank in the reverse");
      expect(world_.rank_in(odd, rank) == (rank % 2 == rank_ % 2 ? rank / 2 : -1),
             "a rank in half");
      expect(world_.host(rank) == world_.host(rank_) && !world_.host(rank).empty(), "a host");
    }
    expect(back.rank_in(world_, back.rank()) == rank_, "and the other way");
    expect(world_.local_rank() == rank_ && world_.local_size() == size_, "all are on one host");
    expect(back.local_rank() == back.rank() && odd.local_size() == odd.size(), "in parts, too");
    expect(fails([&] { (void)world_.host(size_); }), "there is no such rank");
    expect(fails([&] { (void)world_.rank_in(back, -1); }), "there is no rank below zero");
    const Communicator other = hocket::join({.name = "other"});
    expect(fails([&] { (void)world_.rank_in(other, 0); }), "another world");
  }

  void allocate_some() {
    Memory memory = hocket::allocate(world_, std::size_t{8} << 20);
    const std::span<std::int64_t> values = memory.as<std::int64_t>();
    expect(values.size() == std::size_t{1} << 20 && values.back() == 0, "zeroed memory");
    values.back() = 1;
    world_.all_reduce(values);
    expect(values.back() == size_, "its sum");
    Memory moved = std::move(memory);
    memory = hocket::allocate(world_, 100);
    expect(moved.as<std::int64_t>().back() == size_ && memory.size() == 100, "memory moves");
    expect(hocket::allocate(world_, 0).as<float>().empty(), "no memory");
    memory = {};
    expect(memory.data() == nullptr, "nothing is left");
  }

  void refuse_them() {
    Values values(index(size_) + 1);
    Values part(2);
    expect(size_ == 1 || fails([&] { world_.all_gather(values); }), "no multiple, in place");
    expect(size_ == 1 || fails([&] { world_.all_to_all(values, values); }), "no multiple");
    expect(fails([&] { world_.all_reduce(values, part); }), "sizes that differ");
  }

 private:
  /// Piece r is of elements r.
  void expect_ranks(Holes& got, const std::string& what) {
    for (int rank = 0; rank < size_; ++rank) {
      const auto piece = got.piece(rank);
      expect(piece.front() == rank && piece.back() == rank, what);
    }
    expect(got.are_holes_whole(), what + ": a hole was written to");
  }
  static Cell cell(std::size_t i, int rank) {
    return {.mean = static_cast<float>(i % 8), .weight = rank + 1, .highest = rank};
  }
  static std::vector<Function> functions(std::size_t count, int rank) {
    std::vector<Function> all(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto number = static_cast<std::uint32_t>(i);
      all[i] = {.factor = 2 * number + 3, .term = number + 7U * static_cast<std::uint32_t>(rank)};
    }
    return all;
  }
  static std::int32_t part_weight(int size) { return size * (size + 1) / 2; }
  /// Of the numbers below it.
  static std::int64_t first_sum(std::int64_t end) { return end * (end - 1) / 2; }
  static Values part_of(int rank) { return {rank * 2, rank * 2 + 1}; }

  template <class Call>
  [[nodiscard]] static bool fails(const Call& call) {
    return hocket::testing::failure_of(call).code() == hocket::StatusCode::invalid_argument;
  }
  void expect(bool holds, const std::string& what) { report_.expect(holds, what); }
  /// Of a vector that has this rank's part at its place.
  template <class Call>
  void expect_in_place(const Call& call, const Values& wanted, const std::string& what) {
    Values values(whole_.size(), -1);
    const Values own = part_of(rank_);
    values[index(rank_) * 2] = own[0];
    values[index(rank_) * 2 + 1] = own[1];
    call(values);
    expect(values == wanted, what + " in place");
  }

  Communicator& world_;
  Report& report_;
  int rank_;
  int size_;
  Values whole_ = [this] {
    Values values(index(size_) * 2);
    std::iota(values.begin(), values.end(), 0);
    return values;
  }();
};

}  // namespace

int main() {
  Report report;
  Communicator world = hocket::join();
  Methods methods(world, report);
  methods.reduce_them();
  methods.gather_them();
  methods.gather_uneven();
  for (const std::size_t scale : {std::size_t{1}, std::size_t{50'000}}) methods.use_lists(scale);
  methods.refuse_lists();
  methods.reduce_cells();
  methods.reduce_in_order();
  methods.send_them();
  methods.know_ranks();
  methods.allocate_some();
  methods.refuse_them();
  world.barrier();
  return report.status();
}
