/* The stores of the C ABI as a C11 program uses them: those that come with Hocket, and one of its
 * own. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "hocket/hocket.h"

#include "expect.h"

static void local_store(void) {
  hocket_store* store = NULL;
  hocket_store* part = NULL;
  hocket_values* values = NULL;
  int64_t number = 0;
  int32_t yes = 0;
  expect(hocket_store_make_local(&store) == HOCKET_OK, "a local store");
  expect(hocket_store_set(store, "a", "one", 3, 0) == HOCKET_OK, "set");
  expect(hocket_store_append(store, "a", "!", 1, 0) == HOCKET_OK, "append");
  expect(hocket_store_get(store, "a", 0, &values) == HOCKET_OK, "get");
  expect(hocket_values_count(values) == 1 && hocket_values_size(values, 0) == 4, "one value");
  expect(strcmp(hocket_values_data(values, 0), "one!") == 0, "its bytes");
  expect(hocket_values_data(values, 1) == NULL, "no other");
  hocket_values_free(values);
  expect(hocket_store_get(store, "none", HOCKET_NO_WAIT, &values) == HOCKET_TIMEOUT, "no key");
  expect(values == NULL && strstr(hocket_last_error(), "none") != NULL, "which");
  expect(hocket_store_add(store, "n", 5, 0, &number) == HOCKET_OK && number == 5, "add");
  const char* const keys[] = {"x", "y"};
  const void* const texts[] = {"1", "22"};
  const size_t sizes[] = {1, 2};
  expect(hocket_store_multi_set(store, keys, texts, sizes, 2, 0) == HOCKET_OK, "multi_set");
  expect(hocket_store_multi_get(store, keys, 2, 0, &values) == HOCKET_OK, "multi_get");
  expect(hocket_values_count(values) == 2 && hocket_values_size(values, 1) == 2, "two values");
  hocket_values_free(values);
  expect(hocket_store_wait(store, keys, 2, 0) == HOCKET_OK, "wait");
  expect(hocket_store_check(store, keys, 2, 0, &yes) == HOCKET_OK && yes, "check");
  expect(hocket_store_compare_set(store, "x", "1", 1, "2", 1, 0, &yes, &values) == HOCKET_OK && yes,
         "compare_set");
  expect(strcmp(hocket_values_data(values, 0), "2") == 0, "what it holds then");
  hocket_values_free(values);
  expect(
      hocket_store_compare_set(store, "z", "1", 1, "2", 1, 0, &yes, &values) == HOCKET_OK && !yes,
      "compare_set of no key");
  expect(hocket_values_count(values) == 0, "which holds nothing");
  hocket_values_free(values);
  expect(hocket_store_num_keys(store, 0, &number) == HOCKET_OK && number == 4, "num_keys");
  expect(hocket_store_make_prefix(store, "p", &part) == HOCKET_OK, "a part");
  expect(hocket_store_set(part, "k", NULL, 0, 0) == HOCKET_OK, "an empty value");
  hocket_store_free(part);
  expect(hocket_store_keys(store, "p", 0, &values) == HOCKET_OK, "keys");
  expect(hocket_values_count(values) == 1 && strcmp(hocket_values_data(values, 0), "p/k") == 0,
         "the key of the part");
  hocket_values_free(values);
  expect(hocket_store_queue_push(store, "q", "v", 1, 0) == HOCKET_OK, "queue_push");
  expect(hocket_store_queue_length(store, "q", 0, &number) == HOCKET_OK && number == 1, "length");
  expect(hocket_store_queue_pop(store, "q", 0, &values) == HOCKET_OK, "queue_pop");
  hocket_values_free(values);
  expect(hocket_store_barrier(store, "b", 1, 0) == HOCKET_OK, "barrier");
  expect(hocket_store_delete_key(store, "x", 0, &yes) == HOCKET_OK && yes, "delete_key");
  expect(hocket_store_set(NULL, "a", "b", 1, 0) == HOCKET_INVALID_ARGUMENT, "no store");
  expect(hocket_store_set(store, NULL, "b", 1, 0) == HOCKET_INVALID_ARGUMENT, "no key");
  expect(hocket_store_set(store, "a", NULL, 1, 0) == HOCKET_INVALID_ARGUMENT, "no value");
  hocket_store_free(store);
  hocket_store_free(NULL);
}

static void served_store(void) {
  hocket_store_server* server = NULL;
  hocket_store* store = NULL;
  hocket_values* value = NULL;
  expect(hocket_store_server_start(NULL, &server) == HOCKET_OK, "a server");
  char url[64];
  snprintf(url, sizeof url, "tcp://127.0.0.1:%d", hocket_store_server_port(server));
  hocket_store_options options = {.struct_size = sizeof options, .url = url};
  expect(hocket_store_open(&options, &store) == HOCKET_OK, "its client");
  expect(hocket_store_set(store, "a", "b", 1, 0) == HOCKET_OK, "set there");
  hocket_store_server_free(server);
  expect(hocket_store_get(store, "a", 0, &value) == HOCKET_PEER_LOST, "a server that has gone");
  hocket_store_free(store);
  options.url = "tcp://nowhere";
  expect(hocket_store_open(&options, &store) == HOCKET_INVALID_ARGUMENT, "a URL without a port");
}

/* Moves all values, and frees the list that they were in. */
static void hand_on(hocket_values* from, hocket_values* to) {
  for (size_t i = 0; i < hocket_values_count(from); ++i)
    hocket_values_add(to, hocket_values_data(from, i), hocket_values_size(from, i));
  hocket_values_free(from);
}

/* A store of our own, which hands all on to another one: the context. */
static hocket_status own_set(void* context, const char* key, const void* value, size_t size,
                             int64_t timeout_ns) {
  return hocket_store_set(context, key, value, size, timeout_ns);
}
static hocket_status own_get(void* context, const char* key, int64_t timeout_ns,
                             hocket_values* value) {
  hocket_values* found = NULL;
  const hocket_status status = hocket_store_get(context, key, timeout_ns, &found);
  hand_on(found, value);
  return status;
}
static hocket_status own_wait(void* context, const char* const* keys, size_t count,
                              int64_t timeout_ns) {
  return hocket_store_wait(context, keys, count, timeout_ns);
}
static hocket_status own_check(void* context, const char* const* keys, size_t count,
                               int64_t timeout_ns, int32_t* are_there) {
  return hocket_store_check(context, keys, count, timeout_ns, are_there);
}
static hocket_status own_add(void* context, const char* key, int64_t amount, int64_t timeout_ns,
                             int64_t* sum) {
  return hocket_store_add(context, key, amount, timeout_ns, sum);
}
static int compare_sets = 0;
static hocket_status own_compare_set(void* context, const char* key, const void* expected,
                                     size_t expected_size, const void* desired, size_t desired_size,
                                     int64_t timeout_ns, int32_t* is_set, hocket_values* value) {
  hocket_values* found = NULL;
  ++compare_sets;
  const hocket_status status = hocket_store_compare_set(
      context, key, expected, expected_size, desired, desired_size, timeout_ns, is_set, &found);
  hand_on(found, value);
  return status;
}
static hocket_status own_delete_key(void* context, const char* key, int64_t timeout_ns,
                                    int32_t* was_there) {
  return hocket_store_delete_key(context, key, timeout_ns, was_there);
}
static int extras = 0;
static hocket_status own_append(void* context, const char* key, const void* more, size_t size,
                                int64_t timeout_ns) {
  ++extras;
  return hocket_store_append(context, key, more, size, timeout_ns);
}
static hocket_status own_multi_get(void* context, const char* const* keys, size_t count,
                                   int64_t timeout_ns, hocket_values* values) {
  ++extras;
  hocket_values* found = NULL;
  const hocket_status status = hocket_store_multi_get(context, keys, count, timeout_ns, &found);
  hand_on(found, values);
  return status;
}
static hocket_status own_keys(void* context, const char* prefix, int64_t timeout_ns,
                              hocket_values* keys) {
  ++extras;
  hocket_values* found = NULL;
  const hocket_status status = hocket_store_keys(context, prefix, timeout_ns, &found);
  hand_on(found, keys);
  return status;
}
static void own_release(void* context) { hocket_store_free(context); }

/* What works without these functions, but for the keys, uses them where they are given. */
static void extra_functions(hocket_store_functions functions) {
  for (int i = 0; i < 2; ++i) {
    hocket_store* store = NULL;
    hocket_values* values = NULL;
    const char* const keys[] = {"e/1", "e/2"};
    expect(hocket_store_make_local(&store) == HOCKET_OK, "a store to hand on to");
    functions.context = store;
    if (i == 1) {
      functions.append = own_append;
      functions.multi_get = own_multi_get;
      functions.keys = own_keys;
    }
    expect(hocket_store_make_custom(&functions, &store) == HOCKET_OK, "a store of our own");
    expect(hocket_store_append(store, "e/1", "a", 1, 0) == HOCKET_OK, "append");
    expect(hocket_store_append(store, "e/1", "b", 1, 0) == HOCKET_OK, "append more");
    expect(hocket_store_set(store, "e/2", "c", 1, 0) == HOCKET_OK, "set");
    expect(hocket_store_multi_get(store, keys, 2, 0, &values) == HOCKET_OK, "multi_get");
    expect(strcmp(hocket_values_data(values, 0), "ab") == 0, "both parts");
    expect(strcmp(hocket_values_data(values, 1), "c") == 0, "the second value");
    hocket_values_free(values);
    values = NULL;
    const hocket_status listed = hocket_store_keys(store, "e/", 0, &values);
    expect(listed == (i == 1 ? HOCKET_OK : HOCKET_UNSUPPORTED), "keys");
    expect(i == 0 || hocket_values_count(values) == 2, "two keys");
    expect((extras == 4) == (i == 1), "the functions that were given");
    hocket_values_free(values);
    hocket_store_free(store);
  }
}

/* Ranks that meet in a store of the program: here one that rank 0 serves, at a port that was free.
 */
static void own_store(hocket_comm* world) {
  const int is_server = hocket_comm_rank(world) == 0;
  hocket_store_server* server = NULL;
  if (is_server) expect(hocket_store_server_start(NULL, &server) == HOCKET_OK, "a server");
  int32_t port = hocket_store_server_port(server);
  expect(hocket_broadcast(world, &port, 1, HOCKET_I32, 0) == HOCKET_OK, "tell its port");
  char url[64];
  snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
  const hocket_store_options options = {.struct_size = sizeof options, .url = url};
  hocket_store* served = NULL;
  expect(hocket_store_open(&options, &served) == HOCKET_OK, "its client");
  hocket_store_functions functions = {.struct_size = sizeof functions,
                                      .context = served,
                                      .release = own_release,
                                      .set = own_set,
                                      .get = own_get,
                                      .wait = own_wait,
                                      .check = own_check,
                                      .add = own_add,
                                      .compare_set = own_compare_set};
  hocket_store* store = NULL;
  expect(hocket_store_make_custom(&functions, &store) == HOCKET_INVALID_ARGUMENT,
         "a function is missing");
  functions.delete_key = own_delete_key;
  extra_functions(functions);
  expect(hocket_store_make_custom(&functions, &store) == HOCKET_OK, "a store of our own");
  hocket_join_options join = {.struct_size = sizeof join,
                              .store = store,
                              .rank = hocket_comm_rank(world),
                              .size = hocket_comm_size(world)};
  hocket_comm* other = NULL;
  expect(hocket_join(&join, &other) == HOCKET_OK, "a world that meets in it");
  hocket_values* met = NULL;
  expect(hocket_store_keys(served, "hocket/", 0, &met) == HOCKET_OK, "the keys of the world");
  expect(hocket_values_count(met) > 0 && compare_sets > 0, "the ranks met in the program's store");
  hocket_values_free(met);
  hocket_comm* none = NULL;
  join.size = 0;
  if (join.rank > 0)
    expect(hocket_join(&join, &none) == HOCKET_INVALID_ARGUMENT, "a rank without a size");
  hocket_store_free(store);
  expect(hocket_comm_rank(other) == hocket_comm_rank(world), "its rank");
  expect(hocket_barrier(other) == HOCKET_OK, "its barrier");
  expect(hocket_monitored_barrier(other, 0) == HOCKET_OK, "its barrier over the store");
  hocket_comm_free(other);
  hocket_barrier(world);  // nobody needs the server any more
  hocket_store_server_free(server);
}

int main(void) {
  hocket_comm* world = NULL;
  if (hocket_join(NULL, &world) != HOCKET_OK) {
    printf("no world: %s\n", hocket_last_error());
    return 1;
  }
  local_store();
  served_store();
  own_store(world);
  hocket_comm_free(world);
  return failures == 0 ? 0 : 1;
}
