// What `hocket run` is told.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"

namespace hocket::run {

struct Options {
  std::vector<std::string> command = {};  // the program and its arguments
  int ranks = 0;                          // of each node; 0 for as many as it has slots
  bool tags = true;
  std::string output_folder = {};
  Duration grace = std::chrono::seconds(5);
  std::string hosts = {};  // "a:4,b:4"
  std::string host_file = {};
  std::string rsh = "ssh -o BatchMode=yes -o ConnectTimeout=10";
  std::string hocket = {};  // the program on the other hosts; empty for the same path as here
  std::vector<std::string> exports = {};  // NAME or NAME=value
  int nodes = 1;
  int node = 0;
  std::string master = {};  // HOST:PORT
  int restarts_max = 0;
  bool is_dry = false;
  std::string job = {};
  Duration timeout = std::chrono::minutes(5);  // for the nodes to come together
};

}  // namespace hocket::run
