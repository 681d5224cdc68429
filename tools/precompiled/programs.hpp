// As library.hpp, for programs with command lines.
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "tools/precompiled/library.hpp"
