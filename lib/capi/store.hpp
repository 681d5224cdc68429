// The store of the C ABI, as the other functions take it.
#pragma once

#include <memory>

#include "hocket/hocket.h"
#include "hocket/store.hpp"

#include "base/fd.hpp"

struct hocket_store {
  std::shared_ptr<hocket::Store> store;
  hocket::Origin origin = {};
};

namespace hocket::capi {

/// Throws in a child made by fork().
inline const std::shared_ptr<Store>& shared(const hocket_store& store) {
  if (store.origin.is_inherited()) throw_error(inherited_status("a store"));
  return store.store;
}

}  // namespace hocket::capi
