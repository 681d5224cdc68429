// The rows of a sweep for a person, a spreadsheet or a program.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sweep.hpp"

namespace hocket::bench {

enum class Format { table, osu, csv, json };

/// Of the whole sweep.
struct Conditions {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::string transport = {};
  std::string algorithm = {};  // the rules that were given, if any
  int ranks = 1;
  int hosts = 1;
  int machines = 1;
  unsigned processors = 1;  // of rank 0's host
  bool in_place = false;
  bool is_started = false;
  bool is_prepared = false;
  std::string memory = "host";
  bool checks = true;
  std::size_t iterations = 0;  // 0: chosen for each size
  std::size_t warmups = 0;
};

/// Writes to stdout: each row as soon as it is there, but for JSON, which is one document.
class SweepReport {
 public:
  SweepReport(const Conditions& conditions, Format format);

  void add(const Row& row);
  void finish() const;

 private:
  const Conditions conditions_;
  const Format format_;
  std::vector<Row> rows_;
};

}  // namespace hocket::bench
