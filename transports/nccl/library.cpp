#include "transports/nccl/library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/log.hpp"

namespace hocket::nccl {
namespace {

constexpr const char* usual_name = "libnccl.so.2";

/// Two copies in one process would have two of everything: a program's own one comes first.
Result<Library> find_library() {
  const char* const usual[] = {usual_name};
  if (auto loaded = Library::find_loaded(usual_name); loaded.ok()) return loaded;
  const std::string wanted = process_config().get(variables::nccl_library);
  if (wanted.empty()) return Library::open(usual);
  const char* const named[] = {wanted.c_str()};
  return Library::open(named);
}

Result<Functions> load() {
  if (process_environment().get("NCCL_COMM_BLOCKING") == "1") {
    return Status(StatusCode::unsupported,
                  "NCCL_COMM_BLOCKING=1 makes NCCL wait for other ranks without a limit")
        .with_hint("unset it");
  }
  const auto found = find_library();
  if (!found.ok()) {
    return Status(StatusCode::unsupported,
                  fmt::format("NCCL was not found: {}", found.status().what()))
        .with_hint("install NCCL 2.18 or later, or name its file by HOCKET_NCCL_LIBRARY");
  }
  Functions functions(*found);
  if (functions.ncclGetVersion != nullptr) {
    (void)functions.ncclGetVersion(&functions.version);
    Dl_info info = {};
    const auto* const address = reinterpret_cast<const void*>(functions.ncclGetVersion);
    if (dladdr(address, &info) != 0 && info.dli_fname != nullptr) functions.file = info.dli_fname;
  }
  if (functions.version > 0 && functions.version < oldest) {
    return Status(StatusCode::unsupported,
                  fmt::format("NCCL {} ({}) is too old: 2.18 or later is needed",
                              version_text(functions.version), functions.file))
        .with_hint("install a later one, or name its file by HOCKET_NCCL_LIBRARY");
  }
  if (!functions.find.status().ok()) return functions.find.status();
  log::line(log::Level::info, "NCCL {} from {}", version_text(functions.version), functions.file);
  return functions;
}

StatusCode code_of(Outcome outcome) noexcept {
  switch (outcome) {
    case remote_error:
      return StatusCode::peer_lost;
    case invalid_argument:
    case invalid_usage:
      return StatusCode::invalid_argument;
    default:
      return StatusCode::system_error;
  }
}

}  // namespace

/// Versions before 2.9 were written otherwise: 2.8.4 was 2804.
std::string version_text(int version) {
  if (version < 10000) {
    return fmt::format("{}.{}.{}", version / 1000, version / 100 % 10, version % 100);
  }
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

Status Functions::failure(Outcome outcome, std::string_view what, Handle comm) const {
  std::string_view detail = ncclGetLastError(comm);
  return Status(code_of(outcome),
                fmt::format("{}: NCCL {} says {} ({}){}{}", what, version_text(version),
                            ncclGetErrorString(outcome), static_cast<int>(outcome),
                            detail.empty() ? "" : ": ", detail))
      .with_hint("NCCL_DEBUG=WARN makes NCCL say more");
}

const Result<Functions>& library() {
  static const Result<Functions>& loaded = *new Result<Functions>(load());
  return loaded;
}

}  // namespace hocket::nccl
