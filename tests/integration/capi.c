/* The C ABI as a C11 program uses it: a world, collectives, messages, works, what is refused. */
#define _POSIX_C_SOURCE 200809L  // nanosleep
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "hocket/hocket.h"

#include "expect.h"

/* Of one number on each rank, in place. */
static hocket_collective sum_of(int32_t* value) {
  return (hocket_collective){.struct_size = sizeof(hocket_collective),
                             .kind = HOCKET_KIND_ALL_REDUCE,
                             .dtype = HOCKET_I32,
                             .in = value,
                             .out = value,
                             .count = 1,
                             .op = HOCKET_OP_SUM};
}

static void count_end(void* count, hocket_status status) {
  if (status == HOCKET_OK) ++*(atomic_int*)count;
}

static void leftmost(void* context, void* out, const void* a, const void* b, size_t count,
                     hocket_dtype dtype) {
  (void)context;
  (void)b;
  memmove(out, a, count * hocket_dtype_size(dtype));
}

static void greater(void* context, void* out, const void* a, const void* b, size_t count,
                    hocket_dtype dtype) {
  ++*(int*)context;
  for (size_t i = 0; i < count && dtype == HOCKET_I32; ++i) {
    const int32_t x = ((const int32_t*)a)[i];
    const int32_t y = ((const int32_t*)b)[i];
    ((int32_t*)out)[i] = x > y ? x : y;
  }
}

/* A piece for each rank, with a hole behind it: 6000 bytes, which are not copied. */
static void exchange_pieces(hocket_comm* world) {
  enum { ranks_max = 8, count = 1500, stride = 1501 };
  static int32_t sent[ranks_max * stride];
  static int32_t came[ranks_max * stride];
  const int32_t rank = hocket_comm_rank(world);
  const int32_t size = hocket_comm_size(world);
  hocket_piece from[ranks_max];
  hocket_piece to[ranks_max];
  for (int32_t i = 0; i < size && i < ranks_max; ++i) {
    for (int32_t j = 0; j < stride; ++j) sent[i * stride + j] = 100 * rank + i;
    from[i] = (hocket_piece){&sent[i * stride], count};
    to[i] = (hocket_piece){&came[i * stride], count};
    came[i * stride + count] = -1;
  }
  const hocket_collective exchange = {.struct_size = sizeof exchange,
                                      .kind = HOCKET_KIND_ALL_TO_ALL,
                                      .dtype = HOCKET_I32,
                                      .count = count,
                                      .in_pieces = from,
                                      .in_piece_count = (size_t)size,
                                      .out_pieces = to,
                                      .out_piece_count = (size_t)size};
  expect(hocket_run(world, &exchange) == HOCKET_OK, "an exchange of pieces");
  for (int32_t i = 0; i < size && i < ranks_max; ++i) {
    expect(came[i * stride] == 100 * i + rank && came[i * stride + count - 1] == 100 * i + rank,
           "what came");
    expect(came[i * stride + count] == -1, "the hole behind it");
  }
}

static void collectives(hocket_comm* world) {
  const int32_t rank = hocket_comm_rank(world);
  const int32_t size = hocket_comm_size(world);
  float values[3] = {1, 2, (float)rank};
  expect(hocket_all_reduce(world, values, values, 3, HOCKET_F32, HOCKET_OP_SUM) == HOCKET_OK,
         "sum");
  expect(values[0] == (float)size && values[2] == (float)(size * (size - 1) / 2), "its values");

  int32_t all[16] = {0};
  expect(hocket_all_gather(world, &rank, all, 1, HOCKET_I32) == HOCKET_OK, "all_gather");
  for (int32_t i = 0; i < size; ++i) expect(all[i] == i, "a gathered value");

  int32_t ours[16] = {0};
  int32_t sum = 0;
  for (int32_t i = 0; i < size; ++i) ours[i] = i + rank;
  expect(hocket_reduce_scatter(world, ours, &sum, 1, HOCKET_I32, HOCKET_OP_SUM) == HOCKET_OK,
         "reduce_scatter");
  expect(sum == size * rank + size * (size - 1) / 2, "this rank's part of the sum");

  int32_t chosen = rank == 1 ? 77 : 0;
  expect(hocket_broadcast(world, &chosen, 1, HOCKET_I32, 1) == HOCKET_OK, "broadcast");
  expect(chosen == 77, "its value");
  expect(hocket_barrier(world) == HOCKET_OK, "barrier");

  int32_t before = 77;
  hocket_collective scan = {.struct_size = sizeof scan,
                            .kind = HOCKET_KIND_EXSCAN,
                            .dtype = HOCKET_I32,
                            .in = &rank,
                            .out = &before,
                            .count = 1,
                            .op = HOCKET_OP_SUM};
  expect(hocket_run(world, &scan) == HOCKET_OK, "exscan");
  expect(before == (rank == 0 ? 77 : rank * (rank - 1) / 2), "its value, and none for rank 0");
  scan.kind = HOCKET_KIND_SCAN;
  expect(hocket_run(world, &scan) == HOCKET_OK, "scan");
  expect(before == rank * (rank + 1) / 2, "its value");

  int32_t one[1] = {rank};
  int32_t three[3] = {1, 2, rank};
  const hocket_piece pieces[] = {{one, 1}, {NULL, 0}, {three, 3}};
  hocket_collective batch = {.struct_size = sizeof batch,
                             .kind = HOCKET_KIND_ALL_REDUCE,
                             .dtype = HOCKET_I32,
                             .op = HOCKET_OP_SUM,
                             .pieces = pieces,
                             .piece_count = 3};
  expect(hocket_run(world, &batch) == HOCKET_OK, "a batch");
  expect(one[0] == size * (size - 1) / 2 && three[1] == 2 * size && three[2] == one[0],
         "its values");
  batch.kind = HOCKET_KIND_GATHER;
  expect(hocket_run(world, &batch) == HOCKET_INVALID_ARGUMENT, "a batch that can't be");

  int calls = 0;
  int32_t mine[2] = {rank, -rank};
  int32_t most[2] = {0, 0};
  hocket_collective custom = {.struct_size = sizeof custom,
                              .kind = HOCKET_KIND_ALL_REDUCE,
                              .dtype = HOCKET_I32,
                              .in = mine,
                              .out = most,
                              .count = 2,
                              .op = HOCKET_OP_CUSTOM,
                              .custom = greater,
                              .custom_context = &calls};
  expect(hocket_run(world, &custom) == HOCKET_OK, "a function of ours");
  expect(most[0] == size - 1 && most[1] == 0, "what it gives");
  expect(calls > 0 || rank > 0, "its calls");  // rank 0 may reduce for all

  custom.custom = leftmost;
  custom.keeps_order = 1;
  expect(hocket_run(world, &custom) == HOCKET_OK, "a function that is not commutative");
  expect(most[0] == 0 && most[1] == 0, "what it gives is rank 0's");
  custom.custom = greater;
  custom.keeps_order = 0;

  atomic_int ends = 0;
  custom.on_end = count_end;
  custom.on_end_context = &ends;
  hocket_prepared* prepared = NULL;
  expect(hocket_prepare(world, &custom, &prepared) == HOCKET_OK, "prepare");
  for (int i = 0; i < 3; ++i) {
    hocket_work* work = NULL;
    memset(most, 0, sizeof most);
    expect(hocket_prepared_start(prepared, &work) == HOCKET_OK, "start");
    expect(hocket_work_wait(work, 0) == HOCKET_OK, "wait");
    expect(most[0] == size - 1, "what a prepared one gives");
    hocket_work_free(work);
  }
  memset(most, 0, sizeof most);
  expect(hocket_prepared_run(prepared) == HOCKET_OK, "run");
  expect(most[0] == size - 1, "the same by run");
  hocket_prepared_free(prepared);
  const struct timespec a_moment = {.tv_nsec = 1000000};
  for (int i = 0; i < 20000 && atomic_load(&ends) < 4; ++i) nanosleep(&a_moment, NULL);
  expect(atomic_load(&ends) == 4, "a call at the end of each");
}

static void set_flag(void* flag, hocket_status status) {
  atomic_store((atomic_int*)flag, status == HOCKET_OK ? 1 : 2);
}

static void works(hocket_comm* world) {
  const int32_t size = hocket_comm_size(world);
  int32_t values[3] = {1, 1, 1};
  hocket_work* works[3] = {NULL, NULL, NULL};
  atomic_int is_released = 0;
  for (int i = 0; i < 3; ++i) {
    const hocket_collective sum = sum_of(&values[i]);
    expect(hocket_start(world, &sum, &works[i]) == HOCKET_OK, "start");
  }
  atomic_int is_over = 0;
  expect(hocket_work_then(works[0], set_flag, &is_over) == HOCKET_OK, "then");
  expect(hocket_work_then(works[0], NULL, NULL) == HOCKET_INVALID_ARGUMENT, "then nothing");
  expect(hocket_work_then(NULL, set_flag, &is_over) == HOCKET_INVALID_ARGUMENT, "then of nothing");
  expect(hocket_wait_all(works, 2) == HOCKET_OK, "wait for all");
  expect(values[0] == size && values[1] == size, "what all give");
  expect(hocket_work_test(works[0]) == HOCKET_OK, "a test of one that is over");
  expect(hocket_work_detach(works[2], set_flag, &is_released) == HOCKET_OK, "detach");
  const struct timespec a_moment = {.tv_nsec = 1000000};
  for (int i = 0; i < 20000 && atomic_load(&is_released) == 0; ++i) nanosleep(&a_moment, NULL);
  expect(atomic_load(&is_released) == 1 && values[2] == size, "the memory is released");
  for (int i = 0; i < 20000 && atomic_load(&is_over) == 0; ++i) nanosleep(&a_moment, NULL);
  expect(atomic_load(&is_over) == 1, "then, behind the end");
  expect(hocket_work_detach(works[1], NULL, NULL) == HOCKET_OK, "detach what is over");
  expect(hocket_work_detach(NULL, NULL, NULL) == HOCKET_INVALID_ARGUMENT, "detach nothing");
  hocket_work_free(works[0]);
  const hocket_collective barrier = {.struct_size = sizeof barrier, .kind = HOCKET_KIND_BARRIER};
  const hocket_message to_self = {.struct_size = sizeof to_self,
                                  .kind = HOCKET_MESSAGE_SEND,
                                  .dtype = HOCKET_I32,
                                  .data = &values[1],
                                  .count = 1,
                                  .peer = hocket_comm_rank(world),
                                  .tag = 78};
  const hocket_message from_self = {.struct_size = sizeof from_self,
                                    .dtype = HOCKET_I32,
                                    .data = &values[0],
                                    .count = 1,
                                    .peer = hocket_comm_rank(world),
                                    .tag = 78};
  const hocket_collective* collectives[3] = {&barrier, NULL, NULL};
  const hocket_message* mail[3] = {NULL, &from_self, &to_self};
  values[0] = -1;
  expect(hocket_start_many(world, collectives, mail, 3, NULL, 0, &works[0]) == HOCKET_OK,
         "start many");
  expect(hocket_work_wait(works[0], 0) == HOCKET_OK && values[0] == values[1], "what many do");
  hocket_work_free(works[0]);
  mail[0] = &to_self;
  expect(
      hocket_start_many(world, collectives, mail, 3, NULL, 0, &works[0]) == HOCKET_INVALID_ARGUMENT,
      "both of two kinds");

  const hocket_message never = {.struct_size = sizeof never,
                                .dtype = HOCKET_I32,
                                .data = values,
                                .count = 1,
                                .peer = hocket_comm_rank(world),
                                .tag = 77,
                                .timeout_ns = 20000000,
                                .fails_alone = 1};
  hocket_failure failure = {.struct_size = sizeof failure};
  expect(hocket_start_message(world, &never, &works[0]) == HOCKET_OK, "start a receive");
  expect(hocket_wait_all(works, 1) == HOCKET_TIMEOUT, "one of all that fails");
  expect(hocket_last_failure(&failure) == HOCKET_OK, "the failure");
  expect(failure.status == HOCKET_TIMEOUT && failure.rank == hocket_comm_rank(world) &&
             failure.peer == hocket_comm_rank(world) && failure.system_error == 0,
         "its numbers");
  expect(hocket_last_failure(NULL) == HOCKET_INVALID_ARGUMENT, "nowhere to put it");
  expect(hocket_work_test(works[0]) == HOCKET_TIMEOUT, "a test says so, too");
  hocket_work_free(works[0]);
}

static void messages(hocket_comm* world) {
  const int32_t rank = hocket_comm_rank(world);
  const int32_t next = (rank + 1) % hocket_comm_size(world);
  int64_t sent = 1000 + rank;
  int64_t room[2] = {0, 0};
  const hocket_message receive = {.struct_size = sizeof receive,
                                  .dtype = HOCKET_I64,
                                  .data = room,
                                  .count = 2,
                                  .peer = HOCKET_ANY_RANK,
                                  .tag = 5};
  hocket_work* work = NULL;
  hocket_received got = {0};
  size_t which = 9;
  expect(hocket_start_message(world, &receive, &work) == HOCKET_OK, "start a receive");
  expect(hocket_send(world, &sent, 1, HOCKET_I64, next, 5) == HOCKET_OK, "send");
  expect(hocket_wait_any(&work, 1, &which) == HOCKET_OK && which == 0, "wait for any");
  expect(hocket_work_received(work, &got) == HOCKET_OK, "what was received");
  expect(got.count == 1 && got.tag == 5 && room[0] == 1000 + got.peer, "the message");
  const int32_t size = hocket_comm_size(world);
  const int32_t before = (rank + size - 1) % size;
  if (rank == 0) expect(hocket_send(world, &sent, 1, HOCKET_I64, next, 7) == HOCKET_OK, "send on");
  expect(hocket_recv(world, room, 2, HOCKET_I64, before, 7, &got) == HOCKET_OK, "recv");
  expect(got.peer == before && got.count == 1 && room[0] == 1000 + before, "what was passed on");
  if (rank > 0) expect(hocket_send(world, &sent, 1, HOCKET_I64, next, 7) == HOCKET_OK, "send on");
  hocket_work_free(work);
  hocket_message late = receive;
  late.timeout_ns = 20000000;
  late.fails_alone = 1;
  expect(hocket_run_message(world, &late, NULL) == HOCKET_TIMEOUT, "a receive that is late");
  expect(hocket_barrier(world) == HOCKET_OK, "barrier, as the communicator goes on");
  const int32_t is_late = rank == 0;
  if (is_late) hocket_barrier(world);
  expect(hocket_monitored_barrier(world, 20000000) == HOCKET_TIMEOUT, "a rank is missing");
  expect(strstr(hocket_last_error(), " not come within ") != NULL, "why");
  if (!is_late) hocket_barrier(world);
  expect(hocket_monitored_barrier(world, 0) == HOCKET_OK, "all have come");
}

static void groups(hocket_comm* world) {
  const int32_t rank = hocket_comm_rank(world);
  const int32_t size = hocket_comm_size(world);
  hocket_comm* half = NULL;
  hocket_comm* none = NULL;
  hocket_comm* some = NULL;
  const int32_t ranks[] = {1, 0};
  expect(hocket_comm_split(world, rank % 2, -rank, &half) == HOCKET_OK, "split");
  expect(hocket_comm_size(half) == (size + 1 - rank % 2) / 2, "a half's size");
  expect(hocket_comm_split(world, -1, 0, &none) == HOCKET_OK && none == NULL, "no color");
  expect(hocket_comm_group(world, ranks, 2, "some", 0, &some) == HOCKET_OK, "group");
  expect((some != NULL) == (rank < 2), "who is in it");
  if (some != NULL) expect(hocket_comm_rank(some) == 1 - rank, "its order");
  hocket_comm_free(some);
  some = world;
  if (rank == 0) {
    expect(hocket_comm_group(world, ranks, 2, NULL, 1000000, &some) == HOCKET_TIMEOUT, "alone");
    expect(some == NULL && strstr(hocket_last_error(), "rank 1 (pid") != NULL, "who is missing");
    expect(hocket_comm_group(world, ranks, 2, "a/b", 0, &some) == HOCKET_INVALID_ARGUMENT, "name");
    expect(hocket_comm_group(world, NULL, 2, NULL, 0, &some) == HOCKET_INVALID_ARGUMENT, "ranks");
  }
  expect(hocket_comm_rank_in(world, half, rank) == hocket_comm_rank(half), "a rank in a half");
  expect(hocket_comm_rank_in(world, half, (rank + 1) % size) == -1 || size % 2 == 1, "and another");
  expect(hocket_comm_rank_in(world, half, size) == -1, "no rank");
  expect(hocket_comm_local_rank(world) == rank && hocket_comm_local_size(world) == size, "a host");
  expect(strcmp(hocket_comm_host(world, 0), hocket_comm_host(world, rank)) == 0, "its name");
  expect(hocket_comm_host(world, size) == NULL, "no host");
  expect(strlen(hocket_comm_transport(world)) > 0, "the transport");
  hocket_buffer* buffer = NULL;
  expect(hocket_allocate(world, 1000000, &buffer) == HOCKET_OK, "allocate");
  float* const floats = hocket_buffer_data(buffer);
  expect(floats[0] == 0, "it is zeroed");
  floats[0] = 1;
  expect(hocket_all_reduce(world, floats, floats, 250000, HOCKET_F32, HOCKET_OP_SUM) == HOCKET_OK,
         "all_reduce of it");
  expect(floats[0] == (float)size, "its sum");
  hocket_buffer_free(buffer);
  hocket_comm_free(half);
  hocket_comm_free(none);
}

/* Where there is no device, and where there is one that this memory is not of. */
static void host_memory(hocket_comm* world) {
  float value = 1;
  hocket_memory kind = HOCKET_MEMORY_DETECT;
  expect(hocket_memory_kind(&value, &kind) == HOCKET_OK && kind == HOCKET_MEMORY_HOST,
         "memory_kind");
  expect(hocket_memory_kind(NULL, &kind) == HOCKET_OK && kind == HOCKET_MEMORY_HOST,
         "of no memory");
  expect(hocket_memory_kind(&value, NULL) == HOCKET_INVALID_ARGUMENT, "nowhere to say it");

  hocket_collective it = {.struct_size = sizeof it,
                          .kind = HOCKET_KIND_ALL_REDUCE,
                          .dtype = HOCKET_F32,
                          .in = &value,
                          .out = &value,
                          .count = 1,
                          .op = HOCKET_OP_SUM,
                          .memory = HOCKET_MEMORY_HOST};
  hocket_work* work = NULL;
  expect(hocket_start(world, &it, &work) == HOCKET_OK, "memory that is said to be the host's");
  expect(hocket_work_wait_stream(work, NULL) == HOCKET_INVALID_ARGUMENT, "a stream that waits");
  expect(strstr(hocket_last_error(), "a stream can't wait") != NULL, "why it can't");
  expect(hocket_work_wait(work, 0) == HOCKET_OK, "its end");
  expect(value == (float)hocket_comm_size(world), "its value");
  hocket_work_free(work);
  expect(hocket_work_wait_stream(NULL, NULL) == HOCKET_INVALID_ARGUMENT, "a stream, and no work");

  it.has_stream = 1;
  it.memory = HOCKET_MEMORY_DETECT;
  expect(hocket_run(world, &it) != HOCKET_OK, "a stream for memory of the host");
  expect(strstr(hocket_last_error(), "a stream, and") != NULL, "why");
  it.has_stream = 0;
  it.memory = 99;
  expect(hocket_run(world, &it) == HOCKET_INVALID_ARGUMENT, "an unknown kind of memory");
  expect(strstr(hocket_last_error(), "unknown kind of memory: 99") != NULL, "which");
}

/* Convention 9 of hocket.h. */
static void timeouts(hocket_comm* world) {
  const int32_t rank = hocket_comm_rank(world);
  int64_t sent = 7;
  int64_t got = 0;
  hocket_message receive = {.struct_size = sizeof receive,
                            .dtype = HOCKET_I64,
                            .data = &got,
                            .count = 1,
                            .peer = rank,
                            .tag = 6};
  hocket_work* work = NULL;
  expect(hocket_start_message(world, &receive, &work) == HOCKET_OK, "start a receive");
  expect(hocket_work_wait(work, HOCKET_NO_WAIT) == HOCKET_IN_PROGRESS, "a look at it");
  expect(hocket_work_wait(work, 1000) == HOCKET_IN_PROGRESS, "a wait that is too short");
  expect(hocket_work_wait(work, -1) == HOCKET_INVALID_ARGUMENT, "a wait below zero");
  expect(strstr(hocket_last_error(), "HOCKET_NO_WAIT") != NULL, "what to write instead");
  expect(hocket_send(world, &sent, 1, HOCKET_I64, rank, 6) == HOCKET_OK, "send to itself");
  expect(hocket_work_wait(work, 0) == HOCKET_OK && got == 7, "a wait for the end");
  expect(hocket_work_wait(work, HOCKET_NO_WAIT) == HOCKET_OK, "a look at what has ended");
  hocket_work_free(work);

  hocket_comm* hasty = NULL;
  expect(hocket_comm_dup(world, &hasty) == HOCKET_OK, "dup");
  receive.timeout_ns = -1;
  expect(hocket_run_message(hasty, &receive, NULL) == HOCKET_INVALID_ARGUMENT, "below zero");
  receive.timeout_ns = HOCKET_NO_WAIT;
  expect(hocket_run_message(hasty, &receive, NULL) == HOCKET_TIMEOUT, "no time at all");
  hocket_comm_free(hasty);

  hocket_join_options join = {.struct_size = sizeof join, .timeout_ns = -1};
  expect(hocket_join(&join, &hasty) == HOCKET_INVALID_ARGUMENT, "a join below zero");
  join.timeout_ns = 0;
  join.operation_timeout_ns = -1;
  expect(hocket_join(&join, &hasty) == HOCKET_INVALID_ARGUMENT, "operations below zero");
}

static void refused(hocket_comm* world) {
  struct {
    hocket_collective known;
    int64_t unknown;
  } newer = {.known = {.struct_size = sizeof newer, .kind = HOCKET_KIND_BARRIER}, .unknown = 0};
  hocket_collective unset = {.kind = HOCKET_KIND_BARRIER};
  expect(hocket_run(world, &newer.known) == HOCKET_OK, "a newer struct that asks for no more");
  newer.unknown = 1;
  expect(hocket_run(world, &newer.known) == HOCKET_INVALID_ARGUMENT, "one that does");
  expect(strstr(hocket_last_error(), "newer version") != NULL, "why");
  expect(hocket_run(world, &unset) == HOCKET_INVALID_ARGUMENT, "no struct_size");
  expect(hocket_run(world, NULL) == HOCKET_INVALID_ARGUMENT, "no struct");
  expect(hocket_run(NULL, &newer.known) == HOCKET_INVALID_ARGUMENT, "no communicator");
  unset.struct_size = sizeof unset;
  unset.kind = 99;
  expect(hocket_run(world, &unset) == HOCKET_INVALID_ARGUMENT, "an unknown kind");
  expect(hocket_send(world, NULL, 1, HOCKET_F32, 0, 0) == HOCKET_INVALID_ARGUMENT, "no data");
}

/* A world with a name, and one that a program joins which knows of no names. */
static void worlds(hocket_comm* world) {
  hocket_join_options options = {.struct_size = sizeof options, .name = "loader"};
  hocket_comm* named = NULL;
  hocket_comm* old = NULL;
  expect(hocket_join(&options, &named) == HOCKET_OK, "a world with a name");
  options.struct_size = offsetof(hocket_join_options, name);
  expect(hocket_join(&options, &old) == HOCKET_OK, "a struct without it");
  expect(hocket_comm_size(named) == hocket_comm_size(world), "its size");
  expect(hocket_barrier(named) == HOCKET_OK && hocket_barrier(old) == HOCKET_OK, "barriers");
  hocket_comm_free(named);
  hocket_comm_free(old);
  options.struct_size = sizeof options;
  const hocket_setting streams[] = {{"HOCKET_TCP_STREAMS", "2"}, {"HOCKET_ALGORITHM", NULL}};
  options.settings = streams;
  options.setting_count = 2;
  expect(hocket_join(&options, &named) == HOCKET_OK, "a world with settings");
  expect(hocket_barrier(named) == HOCKET_OK, "its barrier");
  hocket_comm_free(named);
  const hocket_setting unknown = {"HOCKET_TCP_STREEMS", "2"};
  options.settings = &unknown;
  options.setting_count = 1;
  expect(hocket_join(&options, &named) == HOCKET_INVALID_ARGUMENT, "a setting that is none");
  expect(strstr(hocket_last_error(), "did you mean HOCKET_TCP_STREAMS?") != NULL, "what it may be");
  options.settings = NULL;
  expect(hocket_join(&options, &named) == HOCKET_INVALID_ARGUMENT, "no settings where one is");
  options.setting_count = 0;
  options.name = "no/name";
  expect(hocket_join(&options, &named) == HOCKET_INVALID_ARGUMENT, "a name that is none");
  expect(strstr(hocket_last_error(), "can't be the name of a world") != NULL, "why");
}

static void meeting(hocket_comm* world) {
  const hocket_join_options options = {.struct_size = sizeof options, .name = "meeting"};
  hocket_store* store = NULL;
  int32_t rank = -1;
  int32_t size = -1;
  expect(hocket_meet(&options, &rank, &size, NULL) == HOCKET_INVALID_ARGUMENT, "meet for nothing");
  expect(hocket_meet(&options, &rank, &size, &store) == HOCKET_OK, "meet");
  expect(rank == hocket_comm_rank(world) && size == hocket_comm_size(world), "who met");
  int64_t sum = 0;
  expect(hocket_store_add(store, "met", 1, 0, &sum) == HOCKET_OK, "add");
  expect(sum >= 1 && sum <= size, "an empty store that all share");
  hocket_barrier(world);
  expect(hocket_store_add(store, "met", 0, 0, &sum) == HOCKET_OK && sum == size, "all have added");
  hocket_barrier(world);  // nobody needs it any more
  hocket_store_free(store);
}

enum { threads = 4, sums = 25 };

/* Sums of its own in a communicator that other threads use, too; null if all are right. */
static void* sum_up(void* group) {
  const int32_t size = hocket_comm_size(group);
  for (int i = 0; i < sums; ++i) {
    int32_t value = 1;
    hocket_work* work = NULL;
    const hocket_collective sum = sum_of(&value);
    if (hocket_start(group, &sum, &work) != HOCKET_OK) return group;
    const hocket_status status = hocket_work_wait(work, 0);
    hocket_work_free(work);
    if (status != HOCKET_OK || value != size) return group;
  }
  return NULL;
}

/* Any thread may call any communicator; which sum meets which is the same, as all are equal. */
static void from_threads(void) {
  const hocket_setting overlap = {"HOCKET_OVERLAP", "4"};
  const hocket_join_options options = {.struct_size = sizeof options,
                                       .name = "threads",
                                       .operation_timeout_ns = INT64_C(30000000000),
                                       .settings = &overlap,
                                       .setting_count = 1};
  hocket_comm* group = NULL;
  expect(hocket_join(&options, &group) == HOCKET_OK, "a world with an overlap");
  pthread_t others[threads];
  for (int i = 0; i < threads; ++i) {
    expect(pthread_create(&others[i], NULL, sum_up, group) == 0, "a thread");
  }
  for (int i = 0; i < threads; ++i) {
    void* wrong = NULL;
    expect(pthread_join(others[i], &wrong) == 0 && wrong == NULL, "sums of a thread");
  }
  hocket_comm_free(group);
}

static void queues(hocket_comm* world) {
  hocket_queue* queue = NULL;
  expect(hocket_queue_create(&queue) == HOCKET_OK, "a queue");
  expect(hocket_queue_fd(queue) >= 0, "its descriptor");
  hocket_completion end = {.struct_size = sizeof end};
  expect(hocket_queue_next(queue, HOCKET_NO_WAIT, &end) == HOCKET_IN_PROGRESS, "nothing is there");
  int32_t value = 1;
  hocket_collective sum = sum_of(&value);
  sum.queue = queue;
  sum.queue_tag = 77;
  hocket_work* work = NULL;
  expect(hocket_start(world, &sum, &work) == HOCKET_OK, "start one that reports");
  hocket_work_free(work);
  expect(hocket_queue_next(queue, 0, &end) == HOCKET_OK, "its completion");
  expect(end.tag == 77 && end.status == HOCKET_OK && !end.is_received, "which one it is");
  expect(value == hocket_comm_size(world), "its sum");
  hocket_message receive = {.struct_size = sizeof receive,
                            .dtype = HOCKET_I32,
                            .data = &value,
                            .count = 1,
                            .peer = hocket_comm_rank(world),
                            .tag = 6,
                            .timeout_ns = 1000000,
                            .fails_alone = 1,
                            .queue = queue,
                            .queue_tag = 78};
  expect(hocket_start_message(world, &receive, &work) == HOCKET_OK, "start a receive that fails");
  hocket_work_free(work);
  expect(hocket_queue_next(queue, 0, &end) == HOCKET_OK, "the completion of one that failed");
  expect(end.tag == 78 && end.status == HOCKET_TIMEOUT, "which one failed");
  expect(strstr(hocket_last_error(), "recv from") != NULL, "its text");
  expect(hocket_run_message(world, &receive, NULL) == HOCKET_INVALID_ARGUMENT, "a blocking call");
  hocket_queue_free(queue);
}

static void aborted(hocket_comm* world) {
  hocket_comm* group = NULL;
  expect(hocket_comm_dup(world, &group) == HOCKET_OK, "dup");
  const int aborts = hocket_comm_rank(world) == 0;
  if (aborts) {
    hocket_comm_abort(group, "enough");
    hocket_comm_abort(group, "too late");
  }
  hocket_status status = HOCKET_OK;
  for (int i = 0; i < 100 && status == HOCKET_OK; ++i) status = hocket_barrier(group);
  expect(status == HOCKET_ABORTED, "an operation after an abort");
  expect(!aborts || strstr(hocket_last_error(), "enough") != NULL, "the first reason counts");
  hocket_comm_free(group);
  hocket_comm_abort(NULL, NULL);
  expect(hocket_barrier(world) == HOCKET_OK, "others go on");
}

int main(void) {
  hocket_comm* world = NULL;
  const hocket_join_options options = {.struct_size = sizeof options,
                                       .operation_timeout_ns = INT64_C(30000000000)};
  if (hocket_join(&options, &world) != HOCKET_OK) {
    printf("no world: %s\n", hocket_last_error());
    return 1;
  }
  collectives(world);
  exchange_pieces(world);
  messages(world);
  groups(world);
  works(world);
  host_memory(world);
  timeouts(world);
  refused(world);
  worlds(world);
  meeting(world);
  from_threads();
  queues(world);
  aborted(world);
  hocket_barrier(world);
  hocket_comm_free(world);
  hocket_leave_all_worlds();  // none is left, which must do no harm
  return failures == 0 ? 0 : 1;
}
