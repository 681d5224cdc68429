// Settings that a program makes itself, in place of its environment.
#pragma once

#include <string>

namespace hocket::inline v0 {

/// A HOCKET_* variable (`hocket info --env` lists them) and its value, as the environment would
/// have it. An empty value stands for the default.
struct Setting {
  std::string name = {};
  std::string value = {};
};

}  // namespace hocket::inline v0
