// `hocket trace`: shows what each rank is doing and which rank the others wait for.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_trace_command(program::Parser& program);

}  // namespace hocket::cli
