// The rules by which others are measured beside Hocket: those of hocket-bench, so that a row says
// the same of each. f32 and sum, out of place but for broadcast, one call after the other; each
// quantile is that of the slowest rank. A result is checked before the timed calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../usage.hpp"

namespace peers {

/// One operation at one size: as many elements at each rank as hocket-bench has.
struct Work {
  std::string operation;
  std::size_t count = 0;   // elements of the whole, or of the part of a rank where there are parts
  std::size_t window = 0;  // messages at once, of sendrecv
  std::vector<float> in = {};
  std::vector<float> out = {};
};

class Contestant {
 public:
  Contestant() = default;
  Contestant(const Contestant&) = delete;
  Contestant& operator=(const Contestant&) = delete;
  virtual ~Contestant() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  virtual void barrier() = 0;
  [[nodiscard]] virtual double max(double value) = 0;
  /// Before all calls of a work. False for one that it has not.
  [[nodiscard]] virtual bool prepare(Work& work) = 0;
  /// Once; of sendrecv, from rank 0 to rank 1 and back.
  virtual void call() = 0;
  /// Of sendrecv: a window of messages from rank 0 to rank 1, and one of 4 bytes back.
  virtual void stream() {}
};

/// What a peer does for a call of an operation; null for one that is not in the list.
template <class Peer>
using Call = void (Peer::*)();
template <class Peer>
Call<Peer> find_call(const std::string& operation,
                     std::initializer_list<std::pair<const char*, Call<Peer>>> all) {
  for (const auto& [name, call] : all) {
    if (operation == name) return call;
  }
  return nullptr;
}

class Contest {
 public:
  Contest(Contestant& who, double seconds) : who_(who), seconds_(seconds) {}

  /// Prints a line of JSON at rank 0. False when the result is wrong, or there is no such
  /// operation.
  bool run(const std::string& operation, std::size_t bytes) {
    Work work = make(operation, bytes);
    if (!who_.prepare(work)) return false;
    who_.barrier();
    who_.call();
    if (who_.max(is_right(work) ? 0 : 1) > 0) {
      if (who_.rank() == 0) std::fprintf(stderr, "%s: wrong result\n", operation.c_str());
      return false;
    }
    const double expected = slowest(time(warmups), 0.5);
    const auto before = hocket::bench::Usage::now();
    std::vector<double> times = time(fitting(expected, 5));
    const auto used = hocket::bench::Usage::now().since(before, static_cast<double>(times.size()));
    double mean = 0;
    for (const double each : times) mean += each / static_cast<double>(times.size());
    mean = who_.max(mean);
    const double p50 = slowest(times, 0.5);
    const double p99 = slowest(times, 0.99);
    const double cpu = who_.max(used.cpu_seconds);
    const double wire = who_.max(used.wire_bytes);
    const double half = operation == "sendrecv" ? 2 : 1;
    std::ostringstream row;
    row << "{\"bytes\": " << bytes_of(work) << ", \"iterations\": " << times.size()
        << ", \"time_s\": " << mean / half << ", \"p50_s\": " << p50 / half
        << ", \"p99_s\": " << p99 / half << ", \"cpu_s\": " << cpu << ", \"wire_bytes\": " << wire;
    if (operation == "sendrecv") row << ", \"bandwidth_gb_s\": " << bandwidth(work);
    if (who_.rank() == 0) std::printf("%s}\n", row.str().c_str());
    std::fflush(stdout);
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int warmups = 5;

  [[nodiscard]] bool has_parts(const std::string& operation) const {
    return operation == "all_gather" || operation == "reduce_scatter";
  }

  Work make(const std::string& operation, std::size_t bytes) const {
    const auto ranks = static_cast<std::size_t>(who_.size());
    const std::size_t parts = has_parts(operation) ? ranks : 1;
    Work work{.operation = operation};
    work.count = operation == "barrier" ? 0 : std::max<std::size_t>(bytes / 4 / parts, 1);
    work.window = std::clamp<std::size_t>((64U << 20U) / std::max<std::size_t>(bytes, 1), 2, 64);
    work.in.resize(work.count * (operation == "reduce_scatter" ? ranks : 1));
    work.out.resize(work.count * (operation == "all_gather" ? ranks : 1));
    // As hocket-bench: each message of a window has a place of its own.
    if (operation == "sendrecv") work.out.resize(work.count * work.window);
    for (std::size_t i = 0; i < work.in.size(); ++i) {
      work.in[i] = static_cast<float>(who_.rank() + 1 + static_cast<int>(i % 5));
    }
    return work;
  }

  [[nodiscard]] std::size_t bytes_of(const Work& work) const {
    return work.count * 4 * (has_parts(work.operation) ? static_cast<std::size_t>(who_.size()) : 1);
  }

  /// A broadcast is from rank 0.
  [[nodiscard]] bool is_right(const Work& work) const {
    if (work.operation == "sendrecv" && who_.rank() > 1) return true;
    const std::size_t got = work.operation == "sendrecv" ? work.count : work.out.size();
    const auto ranks = static_cast<float>(who_.size());
    const auto sum = ranks * (ranks + 1) / 2;
    const auto first = static_cast<std::size_t>(who_.rank()) * work.count;
    for (std::size_t i = 0; i < got; ++i) {
      float wanted = static_cast<float>(1 + i % 5);
      if (work.operation == "sendrecv") wanted += static_cast<float>(1 - who_.rank());
      if (work.operation == "all_reduce") wanted = sum + ranks * static_cast<float>(i % 5);
      if (work.operation == "reduce_scatter") {
        wanted = sum + ranks * static_cast<float>((first + i) % 5);
      }
      if (work.operation == "all_gather") {
        const std::size_t from = i / work.count;
        wanted = static_cast<float>(1 + from + i % work.count % 5);
      }
      if (work.out[i] != wanted) return false;
    }
    return true;
  }

  std::vector<double> time(std::size_t calls) {
    std::vector<double> times(calls);
    who_.barrier();
    Clock::time_point last = Clock::now();
    for (double& each : times) {
      who_.call();
      const Clock::time_point now = Clock::now();
      each = std::chrono::duration<double>(now - last).count();
      last = now;
    }
    return times;
  }

  double bandwidth(const Work& work) {
    const double expected = time_streams(1);
    const std::size_t windows = fitting(expected, 3);
    const double bytes = static_cast<double>(bytes_of(work) * work.window * windows);
    return bytes / time_streams(windows) / 1e9;
  }

  double time_streams(std::size_t windows) {
    who_.barrier();
    const Clock::time_point begin = Clock::now();
    for (std::size_t i = 0; i < windows; ++i) who_.stream();
    return who_.max(std::chrono::duration<double>(Clock::now() - begin).count());
  }

  double slowest(std::vector<double> times, double share) {
    std::sort(times.begin(), times.end());
    const auto place = static_cast<std::size_t>(share * static_cast<double>(times.size()));
    return who_.max(times[std::min(place, times.size() - 1)]);
  }

  [[nodiscard]] std::size_t fitting(double seconds_of_one, std::size_t least) const {
    const auto fitting = static_cast<std::size_t>(seconds_ / std::max(seconds_of_one, 1e-9));
    return std::clamp<std::size_t>(fitting, least, 100'000);
  }

  Contestant& who_;
  double seconds_;
};

/// OPERATION SECONDS SIZE,SIZE…
inline int contest(Contestant& who, int count, char** words) {
  if (count != 3) {
    std::fprintf(stderr, "usage: OPERATION SECONDS_PER_SIZE BYTES,BYTES...\n");
    return 2;
  }
  Contest contest(who, std::strtod(words[1], nullptr));
  std::istringstream sizes(words[2]);
  for (std::string size; std::getline(sizes, size, ',');) {
    if (!contest.run(words[0], std::strtoull(size.c_str(), nullptr, 10))) return 1;
  }
  return 0;
}

}  // namespace peers
