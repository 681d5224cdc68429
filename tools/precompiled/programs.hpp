// As library.hpp, for programs with command lines.
#include "library.hpp"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
