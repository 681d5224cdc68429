/* The C ABI as a C11 program uses it: a world, collectives, messages, works, what is refused. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "hocket/hocket.h"

static int failures = 0;

static void expect(int is_right, const char* what) {
  if (is_right) return;
  ++failures;
  printf("WRONG: %s (last error: %s)\n", what, hocket_last_error());
}

static void count_end(void* count, hocket_status status) {
  if (status == HOCKET_OK) ++*(int*)count;
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

static void collectives(hocket_comm* world) {
  const int32_t rank = hocket_comm_rank(world);
  const int32_t size = hocket_comm_size(world);
  float values[3] = {1, 2, (float)rank};
  expect(hocket_all_reduce(world, values, values, 3, HOCKET_F32, HOCKET_SUM) == HOCKET_OK, "sum");
  expect(values[0] == (float)size && values[2] == (float)(size * (size - 1) / 2), "its values");

  int32_t all[16] = {0};
  expect(hocket_all_gather(world, &rank, all, 1, HOCKET_I32) == HOCKET_OK, "all_gather");
  for (int32_t i = 0; i < size; ++i) expect(all[i] == i, "a gathered value");

  int32_t chosen = rank == 1 ? 77 : 0;
  expect(hocket_broadcast(world, &chosen, 1, HOCKET_I32, 1) == HOCKET_OK, "broadcast");
  expect(chosen == 77, "its value");
  expect(hocket_barrier(world) == HOCKET_OK, "barrier");

  int32_t before = 77;
  hocket_collective scan = {.struct_size = sizeof scan,
                            .kind = HOCKET_EXSCAN,
                            .dtype = HOCKET_I32,
                            .in = &rank,
                            .out = &before,
                            .count = 1,
                            .op = HOCKET_SUM};
  expect(hocket_run(world, &scan) == HOCKET_OK, "exscan");
  expect(before == (rank == 0 ? 77 : rank * (rank - 1) / 2), "its value, and none for rank 0");
  scan.kind = HOCKET_SCAN;
  expect(hocket_run(world, &scan) == HOCKET_OK, "scan");
  expect(before == rank * (rank + 1) / 2, "its value");

  int32_t one[1] = {rank};
  int32_t three[3] = {1, 2, rank};
  const hocket_piece pieces[] = {{one, 1}, {NULL, 0}, {three, 3}};
  hocket_collective batch = {.struct_size = sizeof batch,
                             .kind = HOCKET_ALL_REDUCE,
                             .dtype = HOCKET_I32,
                             .op = HOCKET_SUM,
                             .pieces = pieces,
                             .piece_count = 3};
  expect(hocket_run(world, &batch) == HOCKET_OK, "a batch");
  expect(one[0] == size * (size - 1) / 2 && three[1] == 2 * size && three[2] == one[0],
         "its values");
  batch.kind = HOCKET_GATHER;
  expect(hocket_run(world, &batch) == HOCKET_INVALID_ARGUMENT, "a batch that can't be");

  int calls = 0;
  int32_t mine[2] = {rank, -rank};
  int32_t most[2] = {0, 0};
  hocket_collective custom = {.struct_size = sizeof custom,
                              .kind = HOCKET_ALL_REDUCE,
                              .dtype = HOCKET_I32,
                              .in = mine,
                              .out = most,
                              .count = 2,
                              .op = HOCKET_CUSTOM,
                              .custom = greater,
                              .custom_context = &calls};
  expect(hocket_run(world, &custom) == HOCKET_OK, "a function of ours");
  expect(most[0] == size - 1 && most[1] == 0, "what it gives");
  expect(calls > 0 || rank > 0, "its calls");  // rank 0 may reduce for all

  int ends = 0;
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
  hocket_prepared_free(prepared);
  expect(ends == 3, "a call at the end of each");
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
  expect(hocket_comm_subgroup(world, ranks, 2, &some) == HOCKET_OK, "subgroup");
  expect((some != NULL) == (rank < 2), "who is in it");
  if (some != NULL) expect(hocket_comm_rank(some) == 1 - rank, "its order");
  hocket_comm_free(half);
  hocket_comm_free(none);
  hocket_comm_free(some);
}

/* Where there is no device, and where there is one that this memory is not of. */
static void host_memory(hocket_comm* world) {
  float value = 1;
  hocket_memory kind = HOCKET_DETECT;
  expect(hocket_memory_kind(&value, &kind) == HOCKET_OK && kind == HOCKET_HOST, "memory_kind");
  expect(hocket_memory_kind(NULL, &kind) == HOCKET_OK && kind == HOCKET_HOST, "of no memory");
  expect(hocket_memory_kind(&value, NULL) == HOCKET_INVALID_ARGUMENT, "nowhere to say it");

  hocket_collective it = {.struct_size = sizeof it,
                          .kind = HOCKET_ALL_REDUCE,
                          .dtype = HOCKET_F32,
                          .in = &value,
                          .out = &value,
                          .count = 1,
                          .op = HOCKET_SUM,
                          .memory = HOCKET_HOST};
  hocket_work* work = NULL;
  expect(hocket_start(world, &it, &work) == HOCKET_OK, "memory that is said to be the host's");
  expect(hocket_work_wait_stream(work, NULL) == HOCKET_INVALID_ARGUMENT, "a stream that waits");
  expect(strstr(hocket_last_error(), "a stream can't wait") != NULL, "why it can't");
  expect(hocket_work_wait(work, 0) == HOCKET_OK, "its end");
  expect(value == (float)hocket_comm_size(world), "its value");
  hocket_work_free(work);
  expect(hocket_work_wait_stream(NULL, NULL) == HOCKET_INVALID_ARGUMENT, "a stream, and no work");

  it.has_stream = 1;
  it.memory = HOCKET_DETECT;
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
  } newer = {.known = {.struct_size = sizeof newer, .kind = HOCKET_BARRIER}, .unknown = 0};
  hocket_collective unset = {.kind = HOCKET_BARRIER};
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
  messages(world);
  groups(world);
  host_memory(world);
  timeouts(world);
  refused(world);
  worlds(world);
  aborted(world);
  hocket_barrier(world);
  hocket_comm_free(world);
  return failures == 0 ? 0 : 1;
}
