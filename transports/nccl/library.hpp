// NCCL, as it is found in this process or on this machine.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "hocket/status.hpp"

#include "base/library.hpp"
#include "transports/nccl/abi.hpp"

namespace hocket::nccl {

struct Functions {
  explicit Functions(Library library) : find(library), find_newer(std::move(library)) {}
  FunctionFinder find;
  FunctionFinder find_newer;  // what it has is null in a library that is older

#define HOCKET_FUNCTION(name) nccl::name* name = find(#name)
#define HOCKET_NEWER_FUNCTION(name) nccl::name* name = find_newer(#name)
  HOCKET_FUNCTION(ncclGetVersion);
  HOCKET_FUNCTION(ncclGetErrorString);
  HOCKET_FUNCTION(ncclGetLastError);
  HOCKET_FUNCTION(ncclGetUniqueId);
  HOCKET_FUNCTION(ncclCommInitRankConfig);
  HOCKET_FUNCTION(ncclCommSplit);
  HOCKET_FUNCTION(ncclCommFinalize);
  HOCKET_FUNCTION(ncclCommDestroy);
  HOCKET_FUNCTION(ncclCommAbort);
  HOCKET_FUNCTION(ncclCommGetAsyncError);
  HOCKET_FUNCTION(ncclGroupStart);
  HOCKET_FUNCTION(ncclGroupEnd);
  HOCKET_FUNCTION(ncclAllReduce);
  HOCKET_FUNCTION(ncclReduce);
  HOCKET_FUNCTION(ncclReduceScatter);
  HOCKET_FUNCTION(ncclBroadcast);
  HOCKET_FUNCTION(ncclAllGather);
  HOCKET_FUNCTION(ncclSend);
  HOCKET_FUNCTION(ncclRecv);
  HOCKET_FUNCTION(ncclRedOpCreatePreMulSum);
  HOCKET_FUNCTION(ncclRedOpDestroy);
  HOCKET_NEWER_FUNCTION(ncclCommRegister);
  HOCKET_NEWER_FUNCTION(ncclCommDeregister);
  HOCKET_NEWER_FUNCTION(ncclAlltoAll);
  HOCKET_NEWER_FUNCTION(ncclGather);
  HOCKET_NEWER_FUNCTION(ncclScatter);
#undef HOCKET_FUNCTION
#undef HOCKET_NEWER_FUNCTION

  int version = 0;  // version_of()
  std::string file = {};

  /// "NCCL 2.28.9 says …"
  [[nodiscard]] Status failure(Outcome outcome, std::string_view what, Handle comm) const;
};

/// "2.28.9"
[[nodiscard]] std::string version_text(int version);

/// The copy that the process has already, else HOCKET_NCCL_LIBRARY, else the one that the system
/// finds; once. Fails with unsupported where there is none, or one that is too old. Any thread.
[[nodiscard]] const Result<Functions>& library();

}  // namespace hocket::nccl
