// `hocket info`: what this build of Hocket is, and what it finds on this machine.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_info_command(program::Parser& program);

}  // namespace hocket::cli
