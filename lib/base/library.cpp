#include "base/library.hpp"

#include <string_view>

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/text.hpp"

namespace hocket {
namespace {

/// The loader's words for what it just failed to do.
std::string_view loader_message() noexcept {
  const char* const text = dlerror();
  return text == nullptr ? "no reason was given" : text;
}

}  // namespace

Result<Library> Library::open(std::span<const char* const> names) {
  std::string failures;
  for (const char* const name : names) {
    if (void* const handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return Library(name, handle);
    failures += fmt::format("{}{}", failures.empty() ? "" : "; ", loader_message());
  }
  return Status(StatusCode::unsupported,
                fmt::format("no library {} could be loaded: {}", joined(names, " or "), failures));
}

Result<Library> Library::find_loaded(const char* name) {
  if (void* const handle = dlopen(name, RTLD_NOW | RTLD_NOLOAD)) return Library(name, handle);
  return Status(StatusCode::not_found, fmt::format("the library {} is not loaded", name));
}

Result<void*> Library::address(const char* symbol) const {
  if (void* const found = dlsym(handle_, symbol)) return found;
  return Status(StatusCode::unsupported,
                fmt::format("the library {} has no {}: {}", name_, symbol, loader_message()));
}

FunctionFinder::Found FunctionFinder::if_there(const char* symbol) const {
  const Result<void*> found = library_.address(symbol);
  return {found.ok() ? *found : nullptr};
}

FunctionFinder::Found FunctionFinder::operator()(const char* symbol) {
  const Result<void*> found = library_.address(symbol);
  if (!found.ok() && status_.ok()) status_ = found.status();
  return {found.ok() ? *found : nullptr};
}

}  // namespace hocket
