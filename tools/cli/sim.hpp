// `hocket sim`: how long a collective operation takes on a network that need not be here.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_sim_command(program::Parser& program);

}  // namespace hocket::cli
