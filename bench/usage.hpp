// What a process, and the host that it is on, have used so far.
#pragma once

#include <fstream>
#include <sstream>
#include <string>

#include <sys/resource.h>

namespace hocket::bench {

struct Usage {
  double cpu_seconds = 0;
  double wire_bytes = 0;  // that have left the host, with headers; on a host that shares no network

  [[nodiscard]] static Usage now() {
    rusage used = {};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
      return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    };
    return {seconds(used.ru_utime) + seconds(used.ru_stime), sent()};
  }

  /// In each of so many calls since then.
  [[nodiscard]] Usage since(const Usage& then, double calls) const {
    return {(cpu_seconds - then.cpu_seconds) / calls, (wire_bytes - then.wire_bytes) / calls};
  }

 private:
  /// By all interfaces but the loopback.
  static double sent() {
    constexpr int fields_before_sent = 8;
    std::ifstream devices("/proc/net/dev");
    double all = 0;
    for (std::string line; std::getline(devices, line);) {
      const std::size_t colon = line.find(':');
      if (colon == std::string::npos || line.find("lo:") != std::string::npos) continue;
      std::istringstream fields(line.substr(colon + 1));
      double value = 0;
      for (int i = 0; i <= fields_before_sent; ++i) fields >> value;
      all += value;
    }
    return all;
  }
};

}  // namespace hocket::bench
