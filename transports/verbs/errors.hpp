// What an adapter says of a send or receive that failed, for people.
#pragma once

#include <cstdint>
#include <string>

#include <infiniband/verbs.h>

#include "hocket/status.hpp"

#include "transports/verbs/port.hpp"

namespace hocket::verbs {

/// What is known beside the completion.
struct FailureScene {
  std::uint32_t peer = 0;
  ChosenPort ours = {};
  bool is_port_active = true;
};

/// peer_lost, with what the adapter said, and what that is likely to come from.
[[nodiscard]] Status describe_failure(const ibv_wc& completion, const FailureScene& scene,
                                      std::string_view adapter_words);

}  // namespace hocket::verbs
