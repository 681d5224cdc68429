// What the user tells the selector: HOCKET_ALGORITHM and HOCKET_TUNING_FILE.
#pragma once

#include <string>

#include "hocket/status.hpp"

#include "base/config.hpp"
#include "choose/tuning.hpp"

namespace hocket {

/// The rules of HOCKET_ALGORITHM, then those of the tuning file; and `network`, as far as the file
/// says nothing else. The file is `path`; if that is empty, what HOCKET_TUNING_FILE names; none
/// then, if that is not set. What can't be read is a failure, and never left out: ranks that choose
/// by different rules would wait for each other for ever.
[[nodiscard]] Result<choose::Tuning> read_tuning(const Config& config,
                                                 const choose::Network& network,
                                                 std::string path = {});

}  // namespace hocket
