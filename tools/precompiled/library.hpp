// What sources include most, for the compiler to read once (Meson's b_pch): without it two thirds
// of the time of most files. Each file still includes what it uses, which `tools/check --suite
// alone` checks: it compiles each of them without. No `#pragma once`: this is the main file of its
// compilation.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>
