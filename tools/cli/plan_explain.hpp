// `hocket plan explain`: which algorithm an operation gets, and why.
#pragma once

#include "program/parser.hpp"

namespace hocket::cli {

/// A sub-command of `hocket plan`.
void add_explain_command(program::Parser& plan);

}  // namespace hocket::cli
