// The work of hocket-bench by NCCL alone, for what Hocket adds to it. Hocket only brings the ranks
// together: under `hocket run`, or alone for one rank. Prints JSON.
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

using hocket::bench::Bench;
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
  std::pair<double, double> measure(std::string_view collective, std::size_t bytes, int calls) {
    const auto size = static_cast<std::size_t>(world_.size());
    Storage in(&bench_, hocket::MemoryKind::device, std::max<std::size_t>(bytes, 4));
    Storage out(&bench_, hocket::MemoryKind::device, std::max<std::size_t>(bytes, 4));
    const std::size_t count = std::max<std::size_t>(bytes / 4, 1);
    const std::size_t part = std::max<std::size_t>(count / size, 1);
    void* const stream = bench_.stream().handle;
    const auto call = [&] {
      if (collective == "all_reduce") {
        return f_.ncclAllReduce(in.data(), out.data(), count, nccl::float32, nccl::sum, comm_,
                                stream);
      }
      if (collective == "all_gather") {
        return f_.ncclAllGather(in.data(), out.data(), part, nccl::float32, comm_, stream);
      }
      if (collective == "reduce_scatter") {
        return f_.ncclReduceScatter(in.data(), out.data(), part, nccl::float32, nccl::sum, comm_,
                                    stream);
      }
      return f_.ncclBroadcast(in.data(), out.data(), count, nccl::float32, 0, comm_, stream);
    };
    for (int i = 0; i < 5; ++i) check(call(), collective);
    bench_.wait();
    return time(call, calls);
  }

  [[nodiscard]] bool is_first() { return world_.rank() == 0; }

 private:
  void check(nccl::Outcome outcome, std::string_view what) const {
    if (outcome != nccl::success) throw_error(f_.failure(outcome, what, comm_));
  }

  template <class Call>
  std::pair<double, double> time(Call&& call, int calls) {
    std::vector<hocket::device::Event> marks;
    for (int i = 0; i <= calls; ++i) marks.push_back(bench_.make_mark());
    world_.barrier();
    bench_.mark(marks.front());
    for (std::size_t i = 1; i < marks.size(); ++i) {
      check(call(), "a call");
      bench_.mark(marks[i]);
    }
    bench_.wait();
    std::vector<double> times;
    for (std::size_t i = 1; i < marks.size(); ++i) {
      times.push_back(
          std::chrono::duration<double>(bench_.between(marks[i - 1], marks[i])).count());
    }
    std::ranges::sort(times);
    std::array<double, 2> both = {
        std::accumulate(times.begin(), times.end(), 0.0) / static_cast<double>(times.size()),
        times[times.size() / 2]};
    world_.all_reduce<double>(both, hocket::ReduceOp::max);
    return {both[0], both[1]};
  }

  hocket::Communicator world_;
  const nccl::Functions& f_;
  Bench bench_;
  nccl::Handle comm_ = nullptr;
};

int run(std::string_view collective, std::string_view sizes, int calls) {
  const auto& functions = nccl::library();
  if (!functions.ok()) throw_error(functions.status());
  Direct direct(hocket::join(), *functions);
  std::string rows;
  while (!sizes.empty()) {
    const std::string_view word = sizes.substr(0, sizes.find(','));
    sizes.remove_prefix(std::min(word.size() + 1, sizes.size()));
    const auto bytes = hocket::parse_size(word);
    if (!bytes) {
      fmt::print(stderr, "nccl_direct: {} is no size\n", word);
      return 2;
    }
    const auto [mean, median] = direct.measure(collective, *bytes, calls);
    rows += fmt::format("{}{{\"bytes\": {}, \"time_s\": {}, \"p50_s\": {}}}",
                        rows.empty() ? "" : ", ", *bytes, mean, median);
  }
  if (direct.is_first()) {
    fmt::print("{{\"benchmark\": \"{}\", \"nccl\": \"{}\", \"rows\": [{}]}}\n", collective,
               nccl::version_text((*functions).version), rows);
  }
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fputs("usage: nccl_direct COLLECTIVE SIZE[,SIZE...] [CALLS]\n", stderr);
    return 2;
  }
  try {
    const auto calls = count > 3 ? hocket::parse_integer(arguments[3]) : 200;
    return run(arguments[1], arguments[2], static_cast<int>(calls.value_or(200)));
  } catch (const hocket::Error& error) {
    fmt::print(stderr, "nccl_direct: {}\n", error.what());
    return 1;
  }
}
