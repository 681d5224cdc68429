// The hosts of a job: as a list on the command line, or as a file in Open MPI's or MPICH's form.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hocket/status.hpp"

namespace hocket::run {

struct Host {
  std::string name;   // "node7", "user@node7"
  int slots = 0;      // ranks it is meant for; 0 when nobody says
  int slots_max = 0;  // ranks it may get; 0: as many as slots
};

/// "a:4,b:4", "a,b", "[fe80::1]:2". A host named twice has the slots of both.
[[nodiscard]] Result<std::vector<Host>> parse_hosts(std::string_view text);

/// A host a line: "a slots=4 max_slots=8", "a:4", "a"; comments begin with #. `name` is the file's.
[[nodiscard]] Result<std::vector<Host>> parse_host_file(std::string_view text,
                                                        std::string_view name);

/// How many ranks each host gets: `wanted`, or where that is 0 its slots, which must be the same on
/// all. Whether all are too many is another question.
[[nodiscard]] Result<int> ranks_of_each(const std::vector<Host>& hosts, int wanted);

/// The name of this host.
[[nodiscard]] std::string own_host_name();

/// Whether it is this host.
[[nodiscard]] bool is_here(const Host& host);

/// The name without the user.
[[nodiscard]] std::string address_of(const Host& host);

}  // namespace hocket::run
