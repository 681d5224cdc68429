// A world of processes on this host, for who starts a benchmark by hand.
#pragma once

#include <span>
#include <string>

namespace hocket::bench {

/// The program of that name that was built or installed together with this one; empty for none.
[[nodiscard]] std::string beside_this_program(const std::string& name);

/// Whether somebody says which rank of which world this process is.
[[nodiscard]] bool is_launched();

/// Becomes `hocket run`, and its ranks run this program with the same words. Throws when that can't
/// be.
[[noreturn]] void launch_ranks(int ranks, std::span<const std::string> words);

}  // namespace hocket::bench
