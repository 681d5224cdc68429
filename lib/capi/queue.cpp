// Completion queues of the C ABI.
#include "capi/queue.hpp"

#include <new>

#include "capi/arguments.hpp"
#include "capi/guard.hpp"

using hocket::capi::given;
using hocket::capi::guard;

hocket_status hocket_queue_create(hocket_queue** queue) {
  return guard([&] {
    given(queue) = nullptr;
    *queue = new hocket_queue;
  });
}

int hocket_queue_fd(const hocket_queue* queue) { return queue == nullptr ? -1 : queue->queue.fd(); }

hocket_status hocket_queue_next(hocket_queue* queue, int64_t timeout_ns,
                                hocket_completion* completion) {
  bool is_found = true;
  const hocket_status status = guard([&] {
    hocket::capi::write(hocket_completion{}, completion);  // or refuses, before one is taken
    const auto found = given(queue).queue.next(hocket::capi::timeout(timeout_ns));
    is_found = found.has_value();
    if (!is_found) return;
    hocket_completion known = {.struct_size = 0,
                               .tag = found->tag,
                               .status = static_cast<hocket_status>(found->status.code()),
                               .is_received = found->received ? 1 : 0,
                               .received = {}};
    if (found->received) {
      known.received = {.peer = found->received->peer,
                        .tag = found->received->tag,
                        .count = found->received->count};
    }
    hocket::capi::write(known, completion);
    if (found->status.ok()) return;
    try {
      hocket::capi::fail(found->status, found->status.to_string().c_str());
    } catch (const std::bad_alloc&) {
      hocket::capi::fail(found->status, "");  // it has been taken, whatever there is to say
    }
  });
  return is_found ? status : HOCKET_IN_PROGRESS;
}

void hocket_queue_free(hocket_queue* queue) { delete queue; }
