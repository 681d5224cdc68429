// `hocket trace`: what ranks do, or did last, and who keeps the others waiting.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_trace_command(program::Parser& program);

}  // namespace hocket::cli
