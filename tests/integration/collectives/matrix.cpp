#include "integration/collectives/matrix.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "integration/collectives/kinds.hpp"
#include "integration/collectives/model.hpp"
#include "integration/collectives/operation.hpp"

namespace hocket::testing {
namespace {

constexpr std::size_t under_way_max = 5;
constexpr std::size_t large_bytes = (1 << 20) + 3;

constexpr std::array reducing = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                 CollectiveKind::reduce, CollectiveKind::scan,
                                 CollectiveKind::exscan};
constexpr std::array moving = {CollectiveKind::all_gather, CollectiveKind::broadcast,
                               CollectiveKind::gather, CollectiveKind::scatter,
                               CollectiveKind::all_to_all};

bool has_parts(CollectiveKind kind) {
  return kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::gather || kind == CollectiveKind::scatter ||
         kind == CollectiveKind::all_to_all;
}

class Matrix {
 public:
  Matrix(Communicator& world, Extent extent, std::string_view only, Report& report)
      : world_(world),
        extent_(extent),
        only_(only),
        report_(report),
        size_(static_cast<std::size_t>(world.size())),
        rank_(static_cast<std::size_t>(world.rank())) {}

  void run() {
    for (const CollectiveKind kind : reducing) reductions(kind);
    for (const CollectiveKind kind : moving) movements(kind);
    for (const CollectiveKind kind : reducing) large(kind);
    for (const CollectiveKind kind : moving) large(kind);
    for (const CollectiveKind kind : moving) uneven(kind);
    uneven(CollectiveKind::reduce_scatter);
    for (int i = 0; i < 3; ++i) begin({.kind = CollectiveKind::barrier});
    while (!under_way_.empty()) end_first();
    compare_bits();
  }

 private:
  /// Roots of the next case: all of a small world, if there is time for it.
  [[nodiscard]] std::vector<int> roots(CollectiveKind kind) {
    const int size = static_cast<int>(size_);
    if (!has_root(kind)) return {0};
    if (extent_ == Extent::some) return {static_cast<int>(numbers_ % size_)};
    if (size > 4 && extent_ != Extent::all) return {0, size / 2, size - 1};
    std::vector<int> all;
    for (int i = 0; i < size; ++i) all.push_back(i);
    return all;
  }

  void small_counts(Model model) {
    for (const std::size_t count : {0U, 1U, 37U}) {
      model.count = count;
      for (const int root : roots(model.kind)) {
        model.root = root;
        placements(model);
      }
    }
  }

  void placements(Model model) {
    const bool can_be_in_place = model.kind != CollectiveKind::all_to_all;
    if (extent_ == Extent::some) {
      model.is_in_place = can_be_in_place && numbers_ / 2 % 2 == 0;
      return begin(model);
    }
    begin(model);
    model.is_in_place = true;
    if (can_be_in_place) begin(model);
  }

  void reductions(CollectiveKind kind) {
    for (const DataType type : all_data_types()) {
      for (const ReduceOp op : all_reduce_ops()) {
        Model model{.kind = kind, .type = type, .op = op, .count = 37};
        if (!is_possible(kind, type, op)) {
          refused(model);
        } else if (extent_ == Extent::some || (kind != reducing[0] && extent_ == Extent::more)) {
          model.count = std::array{37U, 1U, 5U, 0U}[numbers_ % 4];
          model.root = static_cast<int>(numbers_ % size_);
          placements(model);
        } else {
          small_counts(model);
        }
      }
    }
    for (const DataType type : {DataType::f32, DataType::f64, DataType::bf16, DataType::c64}) {
      begin({.kind = kind, .type = type, .count = 1001, .is_rough = true});
    }
  }

  void movements(CollectiveKind kind) {
    for (const DataType type : all_data_types()) {
      const std::size_t width = size_of(type);
      const bool is_of_new_width = type == DataType::i8 || width != last_width_;
      last_width_ = width;
      if (extent_ == Extent::all || is_of_new_width) small_counts({.kind = kind, .type = type});
    }
  }

  void large(CollectiveKind kind) {
    constexpr std::array some = {DataType::f32};
    constexpr std::array more = {DataType::f32, DataType::u8};
    std::span<const DataType> types = some;
    if (extent_ == Extent::more) types = more;
    if (extent_ == Extent::all) types = all_data_types();
    for (const DataType type : types) {
      const std::size_t elements = large_bytes / size_of(type) + 3;
      Model model{.kind = kind, .type = type, .count = elements};
      if (has_parts(kind)) model.count = elements / size_ + 1;
      model.root = static_cast<int>(numbers_ % size_);
      placements(model);
      if (extent_ != Extent::some) {
        model.count = model.count / 9;
        placements(model);
      }
    }
  }

  void uneven(CollectiveKind kind) {
    if (!has_parts(kind)) return;
    const std::size_t parts = kind == CollectiveKind::all_to_all ? size_ * size_ : size_;
    for (const std::size_t scale : {1U, 7U, 3001U}) {
      if (extent_ == Extent::some && scale == 3001) continue;
      for (const DataType type : {DataType::u8, DataType::i32, DataType::c128}) {
        Model model{.kind = kind, .type = type};
        for (std::size_t i = 0; i < parts; ++i) {
          model.counts.push_back((i * 5 + numbers_) % 3 * scale * (i % 4));
        }
        for (const int root : roots(kind)) {
          model.root = root;
          placements(model);
        }
      }
    }
  }

  void refused(const Model& model) {
    Operation operation(numbered(model), rank_);
    try {
      world_.run(operation.collective());
      report_.add(fmt::format("rank {}: {} was not refused", rank_, operation.model().text()));
    } catch (const Unsupported&) {
    }
  }

  [[nodiscard]] Model numbered(Model model) {
    model.number = ++numbers_;
    model.size = size_;
    return model;
  }

  void begin(const Model& model) {
    const Model next = numbered(model);
    if (next.text().find(only_) == std::string::npos) return;
    // Each rank in another way: nobody can tell.
    const auto way = static_cast<Way>((numbers_ + rank_ * 3) % ways);
    under_way_.push_back(std::make_unique<Operation>(next, rank_));
    under_way_.back()->begin(world_, way);
    if (under_way_.size() > under_way_max) end_first();
  }

  void end_first() {
    Operation& operation = *under_way_.front();
    report_.add(operation.end());
    if (operation.model().kind == CollectiveKind::all_reduce) {
      hashes_.push_back({operation.model().number, operation.hash()});
    }
    under_way_.pop_front();
  }

  /// All ranks have the same bits after every all_reduce.
  void compare_bits() {
    std::vector<std::uint64_t> ours;
    for (const auto& [number, hash] : hashes_) ours.push_back(hash);
    std::vector<std::uint64_t> all(ours.size() * size_);
    world_.all_gather(ours, all);
    for (std::size_t i = 0; i < ours.size(); ++i) {
      if (all[i] != ours[i]) {
        report_.add(
            fmt::format("rank {}: case {} has other bits than on rank 0", rank_, hashes_[i].first));
      }
    }
  }

  Communicator& world_;
  Extent extent_;
  std::string_view only_;
  Report& report_;
  std::size_t size_;
  std::size_t rank_;
  std::size_t numbers_ = 0;
  std::size_t last_width_ = 0;
  std::deque<std::unique_ptr<Operation>> under_way_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> hashes_;
};

}  // namespace

void run_matrix(Communicator& world, Extent extent, std::string_view only, Report& report) {
  Matrix(world, extent, only, report).run();
}

}  // namespace hocket::testing
