// Small files that nobody but this user may read: secrets, and where the ranks of one host meet.
#pragma once

#include <string>
#include <string_view>

#include "hocket/status.hpp"

namespace hocket {

/// A file's content. Refuses one that others may read, that belongs to somebody else (root apart),
/// or that is larger than limits::private_file_bytes_max. No message shows what it holds.
[[nodiscard]] Result<std::string> read_private_file(const std::string& path);

/// Puts the whole content there at once: a reader sees all of it or what was there before.
Status write_private_file(const std::string& path, std::string_view content);

/// A directory of this user's own, made if need be: hocket in $XDG_RUNTIME_DIR, else in /tmp.
/// Refuses one that is a link, or belongs to somebody else, or that others may enter.
[[nodiscard]] Result<std::string> private_directory(std::string_view runtime_directory);

}  // namespace hocket
