// Stores of the C ABI.
#include "capi/store.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hocket/hocket.h"

#include "capi/arguments.hpp"
#include "capi/guard.hpp"

struct hocket_values {
  std::vector<std::string> list;
};
struct hocket_store_server {
  hocket::StoreServer server;
};

namespace {

using hocket::capi::given;
using hocket::capi::guard;
using hocket::capi::read;
using hocket::capi::shared;
using hocket::capi::timeout;

std::string_view bytes(const void* data, std::size_t size) {
  const auto* const first = static_cast<const char*>(data);
  if (size > 0) given(first);
  return {first, size};
}

std::vector<std::string> list(const char* const* keys, std::size_t count) {
  if (count > 0) given(keys);
  std::vector<std::string> list;
  for (const char* const each : std::span(keys, count)) list.emplace_back(&given(each));
  return list;
}

const std::shared_ptr<hocket::Store>& share_of(hocket_store* store) { return shared(given(store)); }

hocket::Store& store_of(hocket_store* store) { return *share_of(store); }

std::string_view text(const char* key) { return &given(key); }

hocket_values* values_of(std::vector<std::string> list) {
  return new hocket_values{std::move(list)};
}

template <class Make>
hocket_status make(hocket_store** store, const Make& make) {
  return guard([&] {
    given(store) = nullptr;
    *store = new hocket_store{make()};
  });
}

/// A store of a program's functions.
class CustomStore final : public hocket::Store {
 public:
  explicit CustomStore(const hocket_store_functions& functions) : functions_(functions) {}
  ~CustomStore() override {
    if (functions_.release != nullptr) functions_.release(functions_.context);
  }

  void set(std::string_view key, std::string_view value, TimeLimit limit) override {
    require(functions_.set(context(), copy(key).c_str(), value.data(), value.size(), left(limit)));
  }
  std::string get(std::string_view key, TimeLimit limit) override {
    hocket_values found;
    require(functions_.get(context(), copy(key).c_str(), left(limit), &found));
    return only(std::move(found));
  }
  void wait(std::span<const std::string> keys, TimeLimit limit) override {
    require(functions_.wait(context(), pointers(keys).data(), keys.size(), left(limit)));
  }
  bool check(std::span<const std::string> keys, TimeLimit limit) override {
    std::int32_t are_there = 0;
    require(
        functions_.check(context(), pointers(keys).data(), keys.size(), left(limit), &are_there));
    return are_there != 0;
  }
  std::int64_t add(std::string_view key, std::int64_t amount, TimeLimit limit) override {
    std::int64_t sum = 0;
    require(functions_.add(context(), copy(key).c_str(), amount, left(limit), &sum));
    return sum;
  }
  hocket::Swap compare_set(std::string_view key, std::string_view expected,
                           std::string_view desired, TimeLimit limit) override {
    std::int32_t is_set = 0;
    hocket_values found;
    require(functions_.compare_set(context(), copy(key).c_str(), expected.data(), expected.size(),
                                   desired.data(), desired.size(), left(limit), &is_set, &found));
    hocket::Swap swap = {.is_set = is_set != 0};
    if (!found.list.empty()) swap.value = only(std::move(found));
    return swap;
  }
  bool delete_key(std::string_view key, TimeLimit limit) override {
    std::int32_t was_there = 0;
    require(functions_.delete_key(context(), copy(key).c_str(), left(limit), &was_there));
    return was_there != 0;
  }
  void append(std::string_view key, std::string_view more, TimeLimit limit) override {
    if (functions_.append == nullptr) return Store::append(key, more, limit);
    require(functions_.append(context(), copy(key).c_str(), more.data(), more.size(), left(limit)));
  }
  std::vector<std::string> multi_get(std::span<const std::string> keys, TimeLimit limit) override {
    if (functions_.multi_get == nullptr) return Store::multi_get(keys, limit);
    hocket_values found;
    require(
        functions_.multi_get(context(), pointers(keys).data(), keys.size(), left(limit), &found));
    return std::move(found.list);
  }
  std::vector<std::string> keys(std::string_view prefix, TimeLimit limit) override {
    if (functions_.keys == nullptr) return Store::keys(prefix, limit);
    hocket_values found;
    require(functions_.keys(context(), copy(prefix).c_str(), left(limit), &found));
    return std::move(found.list);
  }

 private:
  [[nodiscard]] void* context() const noexcept { return functions_.context; }
  /// Converts a timeout for the functions (convention 9 of hocket.h); it is never the default.
  [[nodiscard]] std::int64_t left(TimeLimit limit) const noexcept {
    const std::int64_t time = limit.value_or(Store::timeout()).count();
    return time > 0 ? time : HOCKET_NO_WAIT;
  }

  /// Adds a terminating NUL.
  static std::string copy(std::string_view key) { return std::string(key); }
  static std::vector<const char*> pointers(std::span<const std::string> keys) {
    std::vector<const char*> pointers;
    for (const std::string& each : keys) pointers.push_back(each.c_str());
    return pointers;
  }
  static void require(hocket_status status) {
    if (status == HOCKET_OK) return;
    const auto code = static_cast<hocket::StatusCode>(status);
    hocket::throw_error(
        hocket::Status(code, code == hocket::StatusCode::timeout
                                 ? "a key was still missing at the end of the timeout"
                                 : "a function of the program's store failed"));
  }
  static std::string only(hocket_values found) {
    if (found.list.size() == 1) return std::move(found.list.front());
    hocket::throw_error(
        hocket::Status(hocket::StatusCode::protocol_error,
                       "a function of the program's store gave the wrong number of values"));
  }

  const hocket_store_functions functions_;
};

void check_functions(const hocket_store_functions& from) {
  const bool has_all = from.set != nullptr && from.get != nullptr && from.wait != nullptr &&
                       from.check != nullptr && from.add != nullptr &&
                       from.compare_set != nullptr && from.delete_key != nullptr;
  if (!has_all) {
    hocket::capi::refuse("set, get, wait, check, add, compare_set and delete_key must not be NULL");
  }
}

}  // namespace

size_t hocket_values_count(const hocket_values* values) {
  return values == nullptr ? 0 : values->list.size();
}

const char* hocket_values_data(const hocket_values* values, size_t index) {
  return index < hocket_values_count(values) ? values->list[index].c_str() : nullptr;
}

size_t hocket_values_size(const hocket_values* values, size_t index) {
  return index < hocket_values_count(values) ? values->list[index].size() : 0;
}

hocket_status hocket_values_add(hocket_values* values, const void* data, size_t size) {
  return guard([&] { given(values).list.emplace_back(bytes(data, size)); });
}

void hocket_values_free(hocket_values* values) { delete values; }

hocket_status hocket_store_open(const hocket_store_options* options, hocket_store** store) {
  return make(store, [&] {
    const hocket_store_options from = read(options);
    return hocket::open_store(
        {.url = &given(from.url),
         .timeout = timeout(from.timeout_ns),
         .settings = hocket::capi::settings(from.settings, from.setting_count)});
  });
}

hocket_status hocket_store_make_local(hocket_store** store) {
  return make(store, [] { return hocket::make_local_store(); });
}

hocket_status hocket_store_make_prefix(hocket_store* whole, const char* prefix,
                                       hocket_store** part) {
  return make(part, [&] { return hocket::make_prefix_store(share_of(whole), text(prefix)); });
}

hocket_status hocket_store_make_custom(const hocket_store_functions* functions,
                                       hocket_store** store) {
  return make(store, [&]() -> std::shared_ptr<hocket::Store> {
    const hocket_store_functions from = read(functions);
    check_functions(from);
    return std::make_shared<CustomStore>(from);
  });
}

void hocket_store_free(hocket_store* store) { delete store; }

hocket_status hocket_store_set(hocket_store* store, const char* key, const void* value, size_t size,
                               int64_t timeout_ns) {
  return guard([&] { store_of(store).set(text(key), bytes(value, size), timeout(timeout_ns)); });
}

hocket_status hocket_store_get(hocket_store* store, const char* key, int64_t timeout_ns,
                               hocket_values** value) {
  return guard([&] {
    given(value) = nullptr;
    *value = values_of({store_of(store).get(text(key), timeout(timeout_ns))});
  });
}

hocket_status hocket_store_multi_set(hocket_store* store, const char* const* keys,
                                     const void* const* values, const size_t* sizes, size_t count,
                                     int64_t timeout_ns) {
  return guard([&] {
    if (count > 0) given(values), given(sizes);
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) texts.emplace_back(bytes(values[i], sizes[i]));
    store_of(store).multi_set(list(keys, count), texts, timeout(timeout_ns));
  });
}

hocket_status hocket_store_multi_get(hocket_store* store, const char* const* keys, size_t count,
                                     int64_t timeout_ns, hocket_values** values) {
  return guard([&] {
    given(values) = nullptr;
    *values = values_of(store_of(store).multi_get(list(keys, count), timeout(timeout_ns)));
  });
}

hocket_status hocket_store_wait(hocket_store* store, const char* const* keys, size_t count,
                                int64_t timeout_ns) {
  return guard([&] { store_of(store).wait(list(keys, count), timeout(timeout_ns)); });
}

hocket_status hocket_store_check(hocket_store* store, const char* const* keys, size_t count,
                                 int64_t timeout_ns, int32_t* are_there) {
  return guard([&] {
    given(are_there) = store_of(store).check(list(keys, count), timeout(timeout_ns)) ? 1 : 0;
  });
}

hocket_status hocket_store_add(hocket_store* store, const char* key, int64_t amount,
                               int64_t timeout_ns, int64_t* sum) {
  return guard([&] {
    const std::int64_t found = store_of(store).add(text(key), amount, timeout(timeout_ns));
    if (sum != nullptr) *sum = found;
  });
}

hocket_status hocket_store_append(hocket_store* store, const char* key, const void* more,
                                  size_t size, int64_t timeout_ns) {
  return guard([&] { store_of(store).append(text(key), bytes(more, size), timeout(timeout_ns)); });
}

hocket_status hocket_store_compare_set(hocket_store* store, const char* key, const void* expected,
                                       size_t expected_size, const void* desired,
                                       size_t desired_size, int64_t timeout_ns, int32_t* is_set,
                                       hocket_values** value) {
  return guard([&] {
    if (value != nullptr) *value = nullptr;
    hocket::Swap swap =
        store_of(store).compare_set(text(key), bytes(expected, expected_size),
                                    bytes(desired, desired_size), timeout(timeout_ns));
    if (is_set != nullptr) *is_set = swap.is_set ? 1 : 0;
    if (value == nullptr) return;
    std::vector<std::string> found;
    if (swap.value) found.push_back(std::move(*swap.value));
    *value = values_of(std::move(found));
  });
}

hocket_status hocket_store_delete_key(hocket_store* store, const char* key, int64_t timeout_ns,
                                      int32_t* was_there) {
  return guard([&] {
    const bool found = store_of(store).delete_key(text(key), timeout(timeout_ns));
    if (was_there != nullptr) *was_there = found ? 1 : 0;
  });
}

hocket_status hocket_store_num_keys(hocket_store* store, int64_t timeout_ns, int64_t* count) {
  return guard([&] { given(count) = store_of(store).num_keys(timeout(timeout_ns)); });
}

hocket_status hocket_store_keys(hocket_store* store, const char* prefix, int64_t timeout_ns,
                                hocket_values** keys) {
  return guard([&] {
    given(keys) = nullptr;
    *keys = values_of(store_of(store).keys(prefix == nullptr ? "" : prefix, timeout(timeout_ns)));
  });
}

hocket_status hocket_store_queue_push(hocket_store* store, const char* key, const void* value,
                                      size_t size, int64_t timeout_ns) {
  return guard(
      [&] { store_of(store).queue_push(text(key), bytes(value, size), timeout(timeout_ns)); });
}

hocket_status hocket_store_queue_pop(hocket_store* store, const char* key, int64_t timeout_ns,
                                     hocket_values** value) {
  return guard([&] {
    given(value) = nullptr;
    *value = values_of({store_of(store).queue_pop(text(key), timeout(timeout_ns))});
  });
}

hocket_status hocket_store_queue_length(hocket_store* store, const char* key, int64_t timeout_ns,
                                        int64_t* length) {
  return guard(
      [&] { given(length) = store_of(store).queue_length(text(key), timeout(timeout_ns)); });
}

hocket_status hocket_store_barrier(hocket_store* store, const char* name, int64_t size,
                                   int64_t timeout_ns) {
  return guard([&] { store_of(store).barrier(text(name), size, timeout(timeout_ns)); });
}

hocket_status hocket_store_server_start(const hocket_store_server_options* options,
                                        hocket_store_server** server) {
  return guard([&] {
    given(server) = nullptr;
    const hocket_store_server_options from =
        options == nullptr ? hocket_store_server_options{} : read(options);
    hocket::StoreServerOptions wanted = {
        .port = from.port,
        .settings = hocket::capi::settings(from.settings, from.setting_count),
        .serves_torch = from.serves_torch != 0};
    if (from.host != nullptr) wanted.host = from.host;
    *server = new hocket_store_server{hocket::StoreServer(wanted)};
  });
}

uint16_t hocket_store_server_port(const hocket_store_server* server) {
  return server == nullptr ? std::uint16_t{0} : server->server.port();
}

void hocket_store_server_free(hocket_store_server* server) { delete server; }
