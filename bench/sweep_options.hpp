// What the command line says of a sweep: with the flags of nccl-tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/parser.hpp"
#include "ranks.hpp"
#include "sweep.hpp"
#include "sweep_report.hpp"

namespace hocket::bench {

struct SweepOptions {
  std::string begin = "8";
  std::string end = "64M";
  std::uint64_t factor = 4;
  std::string step = "0";
  std::vector<std::string> sizes = {};  // in place of all that
  std::size_t iterations = 0;
  std::size_t warmups = 5;
  std::vector<std::string> types = {"f32"};
  std::vector<std::string> ops = {"sum"};
  WorldOptions world = {};
  bool checks = true;
  bool in_place = false;
  bool is_started = false;
  bool is_prepared = false;
  std::string memory = "host";
  std::string format = "table";
  bool csv = false;
  bool json = false;
  bool progress = false;
};

void add_size_options(program::Parser& parser, SweepOptions& options);
void add_work_options(program::Parser& parser, SweepOptions& options);
void add_output_options(program::Parser& parser, SweepOptions& options);

[[nodiscard]] Format format_of(const SweepOptions& options);

/// Throws program::UsageError for what can't be meant, as far as no world is needed to tell.
[[nodiscard]] Sweep read_sweep(CollectiveKind kind, const SweepOptions& options);

}  // namespace hocket::bench
