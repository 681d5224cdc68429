// A shared library that is looked for while the program runs, so that only who uses it needs it.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "hocket/status.hpp"

namespace hocket {

/// Stays loaded as long as the process: what it has begun there (threads, handlers at exit) can't
/// be taken back. A copy is the same library.
class Library {
 public:
  /// The first of `names` that can be loaded: names of files, which the system looks for, or paths.
  /// Fails with unsupported, and says of each why not.
  [[nodiscard]] static Result<Library> open(std::span<const char* const> names);

  /// One that this process has already. Fails with not_found.
  [[nodiscard]] static Result<Library> find_loaded(const char* name);

  /// Sets `to` to a function of the library, or of one that it needs itself. Fails with
  /// unsupported. Whether it is of this type can't be known here: take the type from the library's
  /// own header.
  template <class Function>
  [[nodiscard]] Status find(const char* symbol, Function*& to) const {
    const Result<void*> found = address(symbol);
    if (!found.ok()) return found.status();
    to = reinterpret_cast<Function*>(*found);
    return {};
  }

 private:
  friend class FunctionFinder;
  Library(const char* name, void* handle) noexcept : name_(name), handle_(handle) {}
  [[nodiscard]] Result<void*> address(const char* symbol) const;

  std::string name_;
  void* handle_;
};

/// Fills a table of functions: its first member, after which each other one is written as
///   decltype(&::SSL_new) SSL_new = find("SSL_new");
class FunctionFinder {
 public:
  struct Found {
    void* address;
    template <class Function>
    operator Function*() const noexcept {
      return reinterpret_cast<Function*>(address);
    }
  };

  explicit FunctionFinder(Library library) noexcept : library_(std::move(library)) {}

  /// Null when it is not there.
  [[nodiscard]] Found operator()(const char* symbol);
  /// The same, and no failure.
  [[nodiscard]] Found if_there(const char* symbol) const;
  /// The first failure: unsupported.
  [[nodiscard]] const Status& status() const noexcept { return status_; }

 private:
  Library library_;
  Status status_ = {};
};

}  // namespace hocket
