// Communicators, operations and messages of the C ABI.
#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hocket/hocket.h"
#include "hocket/hocket.hpp"

#include "capi/arguments.hpp"
#include "capi/guard.hpp"
#include "capi/queue.hpp"
#include "capi/store.hpp"

struct hocket_comm {
  hocket::Communicator group;
};
struct hocket_work {
  hocket::Work operation;
};
struct hocket_prepared {
  hocket::Prepared operation;
};
struct hocket_buffer {
  hocket::Memory memory;
};

namespace {

using hocket::capi::given;
using hocket::capi::guard;
using hocket::capi::read;
using hocket::capi::refuse;
using hocket::capi::timeout;

hocket::JoinOptions read_join(const hocket_join_options* options) {
  const hocket_join_options from = options == nullptr ? hocket_join_options{} : read(options);
  hocket::JoinOptions wanted;
  if (from.url != nullptr) wanted.url = from.url;
  if (from.name != nullptr) wanted.name = from.name;
  wanted.timeout = timeout(from.timeout_ns);
  wanted.operation_timeout = timeout(from.operation_timeout_ns).value_or(wanted.operation_timeout);
  wanted.settings = hocket::capi::settings(from.settings, from.setting_count);
  if (from.store != nullptr) wanted.store = hocket::capi::shared(*from.store);
  if (from.size != 0 || from.rank != 0) {  // a rank without a size is refused
    wanted.rank = from.rank;
    wanted.size = from.size == 0 ? -1 : from.size;
  }
  return wanted;
}

/// Of a hocket_collective or a hocket_message.
template <class Struct>
hocket::OperationOptions options_of(const Struct& c) {
  hocket::OperationOptions options;
  options.timeout = timeout(c.timeout_ns);
  // Both are called alike: an enumeration travels as its int32_t.
  options.on_end = reinterpret_cast<decltype(options.on_end)>(c.on_end);
  options.on_end_context = c.on_end_context;
  if (c.queue != nullptr) options.queue = &c.queue->queue;
  options.queue_tag = c.queue_tag;
  return options;
}

/// What is called when an operation has ended: nothing for a function that is null.
auto called_at_end(hocket_end_function function, void* context) {
  return [function, context](const hocket::Status& status) {
    if (function == nullptr) return;
    if (!status.ok()) hocket::capi::fail(status, status.to_string().c_str());
    function(context, static_cast<hocket_status>(status.code()));
  };
}

std::span<const hocket::Piece> pieces_of(const hocket_piece* pieces, size_t count) {
  if (pieces == nullptr && count > 0) refuse("a null pointer for pieces");
  static_assert(sizeof(hocket::Piece) == sizeof(hocket_piece) &&
                offsetof(hocket::Piece, count) == offsetof(hocket_piece, count));
  return {reinterpret_cast<const hocket::Piece*>(pieces), count};
}

hocket::Collective collective_of(const hocket_collective* from, int ranks) {
  const hocket_collective c = read(from);
  hocket::Collective result;
  result.kind = static_cast<hocket::CollectiveKind>(c.kind);
  result.in = c.in;
  result.out = c.out;
  result.type = static_cast<hocket::DataType>(c.dtype);
  result.count = c.count;
  const auto size = static_cast<std::size_t>(ranks);
  if (c.counts != nullptr) result.counts = {c.counts, size};
  if (c.counts_from != nullptr) result.counts_from = {c.counts_from, size};
  result.reduction.op = static_cast<hocket::ReduceOp>(c.op);
  result.reduction.factor = c.factor;
  result.reduction.context = c.custom_context;
  result.reduction.keeps_order = c.keeps_order != 0;
  // Called alike, as above.
  result.reduction.custom = reinterpret_cast<decltype(result.reduction.custom)>(c.custom);
  result.root = c.root;
  result.options = options_of(c);
  result.options.memory = static_cast<hocket::MemoryKind>(c.memory);
  if (c.has_stream != 0) result.options.stream = hocket::Stream{c.stream};
  result.pieces = pieces_of(c.pieces, c.piece_count);
  result.in_pieces = pieces_of(c.in_pieces, c.in_piece_count);
  result.out_pieces = pieces_of(c.out_pieces, c.out_piece_count);
  if (c.pieces != nullptr) {
    if (c.in != nullptr || c.out != nullptr) refuse("both pieces and a buffer");
    result.count = 0;
    for (const hocket::Piece& each : result.pieces) result.count += each.count;
  }
  return result;
}

hocket::Message message_of(const hocket_message* from) {
  const hocket_message m = read(from);
  return {.kind = static_cast<hocket::MessageKind>(m.kind),
          .data = m.data,
          .type = static_cast<hocket::DataType>(m.dtype),
          .count = m.count,
          .peer = m.peer,
          .tag = m.tag,
          .options = options_of(m),
          .fails_alone = m.fails_alone != 0};
}

hocket_received received_of(const hocket::Received& received) noexcept {
  return {received.peer, received.tag, received.count};
}

/// Null for a rank that is none of its ranks.
hocket_comm* handle_of(hocket::Communicator group) {
  return group ? new hocket_comm{std::move(group)} : nullptr;
}

hocket_status run(hocket_comm* comm, const hocket::Collective& collective) {
  return guard([&] { given(comm).group.run(collective); });
}

/// What `begin` gives becomes the work.
template <class Begin>
hocket_status start(hocket_work** work, const Begin& begin) {
  return guard([&] {
    given(work) = nullptr;
    auto started = std::make_unique<hocket_work>();
    started->operation = begin();
    *work = started.release();
  });
}

std::vector<hocket::Work*> operations_of(hocket_work* const* works, size_t count) {
  if (count > 0) given(works);
  std::vector<hocket::Work*> operations;
  for (size_t i = 0; i < count; ++i) operations.push_back(&given(works[i]).operation);
  return operations;
}

hocket_message c_message(void* data, size_t count, hocket_dtype dtype, int32_t peer, int32_t tag) {
  hocket_message message = {};
  message.struct_size = sizeof message;
  message.data = data;
  message.dtype = dtype;
  message.count = count;
  message.peer = peer;
  message.tag = tag;
  return message;
}

}  // namespace

hocket_status hocket_join(const hocket_join_options* options, hocket_comm** comm) {
  return guard([&] {
    given(comm) = nullptr;
    *comm = handle_of(hocket::join(read_join(options)));
  });
}

void hocket_leave_all_worlds(void) { hocket::leave_all_worlds(); }

hocket_status hocket_meet(const hocket_join_options* options, int32_t* rank, int32_t* size,
                          hocket_store** store) {
  return guard([&] {
    given(store) = nullptr;
    hocket::Meeting meeting = hocket::meet(read_join(options));
    if (rank != nullptr) *rank = meeting.rank;
    if (size != nullptr) *size = meeting.size;
    *store = new hocket_store{std::move(meeting.store)};
  });
}

void hocket_comm_free(hocket_comm* comm) { delete comm; }

int32_t hocket_comm_rank(const hocket_comm* comm) {
  return comm == nullptr ? -1 : comm->group.rank();
}

int32_t hocket_comm_size(const hocket_comm* comm) {
  return comm == nullptr ? 0 : comm->group.size();
}

const char* hocket_comm_transport(const hocket_comm* comm) {
  return comm == nullptr ? nullptr : comm->group.transport().data();
}

const char* hocket_comm_host(const hocket_comm* comm, int32_t rank) {
  const char* host = nullptr;
  static_cast<void>(guard([&] { host = given(comm).group.host(rank).data(); }));
  return host;
}

int32_t hocket_comm_local_rank(const hocket_comm* comm) {
  return comm == nullptr ? -1 : comm->group.local_rank();
}

int32_t hocket_comm_local_size(const hocket_comm* comm) {
  return comm == nullptr ? 0 : comm->group.local_size();
}

int32_t hocket_comm_rank_in(const hocket_comm* comm, const hocket_comm* other, int32_t rank) {
  int32_t found = -1;
  static_cast<void>(guard([&] { found = given(comm).group.rank_in(given(other).group, rank); }));
  return found;
}

void hocket_comm_abort(hocket_comm* comm, const char* reason) {
  if (comm != nullptr) comm->group.abort(reason == nullptr ? "" : reason);
}

hocket_status hocket_comm_split(hocket_comm* comm, int32_t color, int32_t key, hocket_comm** part) {
  return guard([&] {
    given(part) = nullptr;
    *part = handle_of(given(comm).group.split(color, key));
  });
}

hocket_status hocket_comm_group(hocket_comm* comm, const int32_t* ranks, size_t count,
                                const char* name, int64_t timeout_ns, hocket_comm** group) {
  return guard([&] {
    given(group) = nullptr;
    if (count > 0) given(ranks);
    *group = handle_of(given(comm).group.group(std::span(ranks, count), name == nullptr ? "" : name,
                                               timeout(timeout_ns)));
  });
}

hocket_status hocket_comm_dup(hocket_comm* comm, hocket_comm** copy) {
  return guard([&] {
    given(copy) = nullptr;
    *copy = handle_of(given(comm).group.dup());
  });
}

hocket_status hocket_run(hocket_comm* comm, const hocket_collective* collective) {
  return guard([&] {
    hocket::Communicator& group = given(comm).group;
    group.run(collective_of(collective, group.size()));
  });
}

hocket_status hocket_start(hocket_comm* comm, const hocket_collective* collective,
                           hocket_work** work) {
  return start(work, [&] {
    hocket::Communicator& group = given(comm).group;
    return group.start(collective_of(collective, group.size()));
  });
}

hocket_status hocket_start_many(hocket_comm* comm, const hocket_collective* const* collectives,
                                const hocket_message* const* messages, size_t count,
                                hocket_queue* queue, uint64_t queue_tag, hocket_work** work) {
  return start(work, [&] {
    hocket::Communicator& group = given(comm).group;
    std::vector<hocket::AnyOperation> operations;
    for (size_t i = 0; i < count; ++i) {
      const hocket_collective* const collective = collectives == nullptr ? nullptr : collectives[i];
      const hocket_message* const message = messages == nullptr ? nullptr : messages[i];
      if ((collective == nullptr) == (message == nullptr))
        refuse("an entry must be either a collective or a message");
      if (collective != nullptr) {
        operations.emplace_back(collective_of(collective, group.size()));
      } else {
        operations.emplace_back(message_of(message));
      }
    }
    hocket::OperationOptions options;
    if (queue != nullptr) options.queue = &queue->queue;
    options.queue_tag = queue_tag;
    return group.start_many(operations, options);
  });
}

hocket_status hocket_prepare(hocket_comm* comm, const hocket_collective* collective,
                             hocket_prepared** prepared) {
  return guard([&] {
    given(prepared) = nullptr;
    hocket::Communicator& group = given(comm).group;
    *prepared = new hocket_prepared{group.prepare(collective_of(collective, group.size()))};
  });
}

hocket_status hocket_prepared_run(hocket_prepared* prepared) {
  return guard([&] { given(prepared).operation.run(); });
}

hocket_status hocket_prepared_start(hocket_prepared* prepared, hocket_work** work) {
  return start(work, [&] { return given(prepared).operation.start(); });
}

void hocket_prepared_free(hocket_prepared* prepared) { delete prepared; }

hocket_status hocket_allocate(hocket_comm* comm, size_t size, hocket_buffer** buffer) {
  return guard([&] {
    given(buffer) = nullptr;
    *buffer = new hocket_buffer{hocket::allocate(given(comm).group, size)};
  });
}

void* hocket_buffer_data(const hocket_buffer* buffer) {
  return buffer == nullptr ? nullptr : buffer->memory.data();
}

void hocket_buffer_free(hocket_buffer* buffer) { delete buffer; }

hocket_status hocket_all_reduce(hocket_comm* comm, const void* in, void* out, size_t count,
                                hocket_dtype dtype, hocket_op op) {
  return run(comm, {.kind = hocket::CollectiveKind::all_reduce,
                    .in = in,
                    .out = out,
                    .type = static_cast<hocket::DataType>(dtype),
                    .count = count,
                    .reduction = static_cast<hocket::ReduceOp>(op)});
}

hocket_status hocket_reduce_scatter(hocket_comm* comm, const void* in, void* out, size_t part_count,
                                    hocket_dtype dtype, hocket_op op) {
  return run(comm, {.kind = hocket::CollectiveKind::reduce_scatter,
                    .in = in,
                    .out = out,
                    .type = static_cast<hocket::DataType>(dtype),
                    .count = part_count,
                    .reduction = static_cast<hocket::ReduceOp>(op)});
}

hocket_status hocket_all_gather(hocket_comm* comm, const void* in, void* out, size_t part_count,
                                hocket_dtype dtype) {
  return run(comm, {.kind = hocket::CollectiveKind::all_gather,
                    .in = in,
                    .out = out,
                    .type = static_cast<hocket::DataType>(dtype),
                    .count = part_count});
}

hocket_status hocket_broadcast(hocket_comm* comm, void* data, size_t count, hocket_dtype dtype,
                               int32_t root) {
  return run(comm, {.kind = hocket::CollectiveKind::broadcast,
                    .in = data,
                    .out = data,
                    .type = static_cast<hocket::DataType>(dtype),
                    .count = count,
                    .root = root});
}

hocket_status hocket_barrier(hocket_comm* comm) { return run(comm, hocket::Collective::barrier()); }

hocket_status hocket_monitored_barrier(hocket_comm* comm, int64_t timeout_ns) {
  return guard([&] { given(comm).group.monitored_barrier(timeout(timeout_ns)); });
}

hocket_status hocket_run_message(hocket_comm* comm, const hocket_message* message,
                                 hocket_received* received) {
  return guard([&] {
    const hocket::Received got = given(comm).group.run(message_of(message));
    if (received != nullptr) *received = received_of(got);
  });
}

hocket_status hocket_start_message(hocket_comm* comm, const hocket_message* message,
                                   hocket_work** work) {
  return start(work, [&] { return given(comm).group.start(message_of(message)); });
}

hocket_status hocket_send(hocket_comm* comm, const void* data, size_t count, hocket_dtype dtype,
                          int32_t peer, int32_t tag) {
  hocket_message message = c_message(const_cast<void*>(data), count, dtype, peer, tag);
  message.kind = HOCKET_MESSAGE_SEND;
  return hocket_run_message(comm, &message, nullptr);
}

hocket_status hocket_recv(hocket_comm* comm, void* data, size_t count, hocket_dtype dtype,
                          int32_t peer, int32_t tag, hocket_received* received) {
  const hocket_message message = c_message(data, count, dtype, peer, tag);
  return hocket_run_message(comm, &message, received);
}

hocket_status hocket_work_wait(hocket_work* work, int64_t timeout_ns) {
  bool has_ended = true;  // also by a failure
  const hocket_status status = guard([&] {
    hocket::Work& operation = given(work).operation;
    const auto time = timeout(timeout_ns);
    if (!time) return operation.wait();
    has_ended = operation.wait_for(*time);
  });
  return has_ended ? status : HOCKET_IN_PROGRESS;
}

hocket_status hocket_work_wait_stream(hocket_work* work, void* stream) {
  return guard([&] { given(work).operation.wait(hocket::Stream{stream}); });
}

hocket_status hocket_memory_kind(const void* memory, hocket_memory* kind) {
  return guard([&] { given(kind) = static_cast<hocket_memory>(hocket::memory_kind(memory)); });
}

hocket_status hocket_work_received(const hocket_work* work, hocket_received* received) {
  return guard([&] { given(received) = received_of(given(work).operation.received()); });
}

hocket_status hocket_work_test(hocket_work* work) { return hocket_work_wait(work, HOCKET_NO_WAIT); }

hocket_status hocket_work_then(hocket_work* work, hocket_end_function function, void* context) {
  return guard([&] {
    static_cast<void>(given(function));
    given(work).operation.then(called_at_end(function, context));
  });
}

hocket_status hocket_work_detach(hocket_work* work, hocket_end_function release, void* context) {
  return guard([&] {
    given(work).operation.detach(called_at_end(release, context));
    delete work;
  });
}

hocket_status hocket_wait_any(hocket_work* const* works, size_t count, size_t* which) {
  return guard([&] { given(which) = hocket::wait_any(operations_of(works, count)); });
}

hocket_status hocket_wait_all(hocket_work* const* works, size_t count) {
  return guard([&] { hocket::wait_all(operations_of(works, count)); });
}

void hocket_work_free(hocket_work* work) { delete work; }
