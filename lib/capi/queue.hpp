// The completion queue of the C ABI, as the other functions take it.
#pragma once

#include "hocket/hocket.h"
#include "hocket/queue.hpp"

struct hocket_queue {
  hocket::CompletionQueue queue;
};
