// `hocket run`: starts a program as the ranks of a job, on this host or on several.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_run_command(program::Parser& program);

}  // namespace hocket::cli
