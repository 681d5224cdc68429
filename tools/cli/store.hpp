// `hocket store`: serves a store, and looks into one.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

void add_store_command(program::Parser& program);

}  // namespace hocket::cli
