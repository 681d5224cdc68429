// Settings that a program makes itself, in place of its environment.
#pragma once

#include <string>

namespace hocket::inline v1 {

/// A HOCKET_* variable (`hocket info --env` lists them) and its value as text, as in the
/// environment. An empty value means the default. If a name occurs twice, the last value counts.
struct Setting {
  std::string name = {};
  std::string value = {};
};

}  // namespace hocket::inline v1
