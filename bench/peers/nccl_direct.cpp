// The work of hocket-bench by NCCL alone, for what Hocket adds to it. Hocket only brings the ranks
// together: under `hocket run`. Prints JSON.
//
//   nccl_direct all_reduce|all_gather|reduce_scatter|broadcast SIZE[,SIZE…] [CALLS]
//
// Sizes are bytes of the whole. f32, sum, root 0.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/text.hpp"
#include "bench/storage.hpp"
#include "transports/nccl/library.hpp"

namespace {

using hocket::CollectiveKind;
using hocket::bench::DeviceStream;
using hocket::bench::Storage;
namespace nccl = hocket::nccl;

class Direct {
 public:
  Direct(hocket::Communicator world, const nccl::Functions& functions)
      : world_(std::move(world)), f_(functions) {
    nccl::UniqueId id = {};
    if (world_.rank() == 0) check(f_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    const std::span<char> bytes = id.bytes;
    world_.broadcast(std::span(reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()));
    nccl::Config config = {};
    check(f_.ncclCommInitRankConfig(&comm_, world_.size(), id, world_.rank(), &config),
          "ncclCommInitRankConfig");
  }
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;
  ~Direct() { (void)f_.ncclCommDestroy(comm_); }

  /// The mean and the median of so many calls, in seconds, of the slowest rank.
  std::pair<double, double> measure(CollectiveKind collective, std::size_t bytes,
                                    std::int64_t calls) {
    const auto size = static_cast<std::size_t>(world_.size());
    Storage in(&device_, hocket::MemoryKind::device, std::max<std::size_t>(bytes, 4));
    Storage out(&device_, hocket::MemoryKind::device, std::max<std::size_t>(bytes, 4));
    const std::size_t count = std::max<std::size_t>(bytes / 4, 1);
    const std::size_t part = std::max<std::size_t>(count / size, 1);
    void* const stream = device_.stream().handle;
    const auto call = [&] {
      switch (collective) {
        case CollectiveKind::all_gather:
          return f_.ncclAllGather(in.data(), out.data(), part, nccl::float32, comm_, stream);
        case CollectiveKind::reduce_scatter:
          return f_.ncclReduceScatter(in.data(), out.data(), part, nccl::float32, nccl::sum, comm_,
                                      stream);
        case CollectiveKind::broadcast:
          return f_.ncclBroadcast(in.data(), out.data(), count, nccl::float32, 0, comm_, stream);
        default:  // of those that are measured, all_reduce
          return f_.ncclAllReduce(in.data(), out.data(), count, nccl::float32, nccl::sum, comm_,
                                  stream);
      }
    };
    for (int i = 0; i < 5; ++i) check(call(), name(collective));
    device_.wait();
    return time(call, calls);
  }

  [[nodiscard]] bool is_first() { return world_.rank() == 0; }

 private:
  void check(nccl::Outcome outcome, std::string_view what) const {
    if (outcome != nccl::success) throw_error(f_.failure(outcome, what, comm_));
  }

  template <class Call>
  std::pair<double, double> time(Call&& call, std::int64_t calls) {
    std::vector<hocket::device::Event> marks;
    for (std::int64_t i = 0; i <= calls; ++i) marks.push_back(device_.make_mark());
    world_.barrier();
    device_.mark(marks.front());
    for (std::size_t i = 1; i < marks.size(); ++i) {
      check(call(), "a call");
      device_.mark(marks[i]);
    }
    device_.wait();
    std::vector<double> times;
    for (std::size_t i = 1; i < marks.size(); ++i) {
      times.push_back(
          std::chrono::duration<double>(device_.between(marks[i - 1], marks[i])).count());
    }
    std::ranges::sort(times);
    std::array<double, 2> both = {
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
        times[times.size() / 2]};
    world_.all_reduce(both, hocket::ReduceOp::max);
    return {both[0], both[1]};
  }

  hocket::Communicator world_;
  const nccl::Functions& f_;
  DeviceStream device_;
  nccl::Handle comm_ = nullptr;
};

constexpr std::array measured = {CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                 CollectiveKind::reduce_scatter, CollectiveKind::broadcast};

struct Wanted {
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::vector<std::size_t> sizes = {};
  std::int64_t calls = 200;
};

/// Else what is wrong is told.
std::optional<Wanted> parse(std::span<char*> arguments) {
  if (arguments.size() < 2 || arguments.size() > 3) {
    std::fputs("usage: nccl_direct COLLECTIVE SIZE[,SIZE...] [CALLS]\n", stderr);
    return std::nullopt;
  }
  Wanted wanted;
  const auto* const kind = std::ranges::find_if(
      measured, [&](CollectiveKind each) { return hocket::name(each) == arguments[0]; });
  if (kind == measured.end()) {
    fmt::print(stderr,
               "nccl_direct: {} is not measured: all_reduce, all_gather, reduce_scatter and "
               "broadcast are\n",
               arguments[0]);
    return std::nullopt;
  }
  wanted.collective = *kind;
  for (std::string_view left = arguments[1]; !left.empty();) {
    const std::string_view word = hocket::take_until(left, ",");
    const auto bytes = hocket::parse_size(word);
    if (!bytes) {
      fmt::print(stderr, "nccl_direct: {} is no size\n", word);
      return std::nullopt;
    }
    wanted.sizes.push_back(*bytes);
  }
  if (arguments.size() == 2) return wanted;
  const auto calls = hocket::parse_integer(arguments[2]);
  if (!calls || *calls < 1) {
    fmt::print(stderr, "nccl_direct: {} is no number of calls\n", arguments[2]);
    return std::nullopt;
  }
  wanted.calls = *calls;
  return wanted;
}

void run(const Wanted& wanted) {
  const auto& functions = nccl::library();
  if (!functions.ok()) throw_error(functions.status());
  Direct direct(hocket::join(), *functions);
  std::string rows;
  for (const std::size_t bytes : wanted.sizes) {
    const auto [mean, median] = direct.measure(wanted.collective, bytes, wanted.calls);
    rows += fmt::format("{}{{\"bytes\": {}, \"time_s\": {}, \"p50_s\": {}}}",
                        rows.empty() ? "" : ", ", bytes, mean, median);
  }
  if (direct.is_first()) {
    fmt::print("{{\"benchmark\": \"{}\", \"nccl\": \"{}\", \"rows\": [{}]}}\n",
               name(wanted.collective), nccl::version_text((*functions).version), rows);
  }
}

}  // namespace

int main(int count, char** arguments) {
  const auto wanted = parse(std::span(arguments, static_cast<std::size_t>(count)).subspan(1));
  if (!wanted) return 2;
  try {
    run(*wanted);
  } catch (const hocket::Error& error) {
    fmt::print(stderr, "nccl_direct: {}\n", error.what());
    return 1;
  }
  return 0;
}
