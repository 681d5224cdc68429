// The part of NCCL's binary interface that we call, in our own words: so that Hocket is built
// without its header and serves every version from 2.18 on. tests/device/nccl_abi.cpp compares each
// line with the header, where there is one.
#pragma once

#include <array>
#include <climits>
#include <cstddef>

namespace hocket::nccl {

struct Comm;                 // ncclComm
using Handle = Comm*;        // ncclComm_t
using StreamHandle = void*;  // cudaStream_t

struct UniqueId {
  std::array<char, 128> bytes;
};

enum Outcome : int {  // ncclResult_t
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

enum Type : int {  // ncclDataType_t
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

enum Op : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };  // ncclRedOp_t

enum Residence : int { scalar_on_device = 0, scalar_on_host = 1 };  // ncclScalarResidence_t

constexpr int undefined = INT_MIN;
constexpr int version_of(int major, int minor, int patch) noexcept {
  return major * 10000 + minor * 100 + patch;
}
constexpr int oldest = version_of(2, 18, 0);
constexpr int no_color = -1;

/// ncclConfig_t as 2.18 has it: a later library gives what is behind it its defaults.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned int magic = 0xcafebeef;
  unsigned int version = oldest;
  int blocking = undefined;
  int cga_cluster_size = undefined;
  int min_ctas = undefined;
  int max_ctas = undefined;
  const char* net_name = nullptr;
  int split_share = undefined;
};

// The functions, by their names.
using ncclGetVersion = Outcome(int* version);
using ncclGetErrorString = const char*(Outcome outcome);
using ncclGetLastError = const char*(Handle comm);
using ncclGetUniqueId = Outcome(UniqueId* id);
using ncclCommInitRankConfig = Outcome(Handle* comm, int size, UniqueId id, int rank,
                                       Config* config);
using ncclCommSplit = Outcome(Handle comm, int color, int key, Handle* part, Config* config);
using ncclCommFinalize = Outcome(Handle comm);
using ncclCommDestroy = Outcome(Handle comm);
using ncclCommAbort = Outcome(Handle comm);
using ncclCommGetAsyncError = Outcome(Handle comm, Outcome* outcome);
using ncclGroupStart = Outcome();
using ncclGroupEnd = Outcome();
using ncclAllReduce = Outcome(const void* in, void* out, std::size_t count, Type type, Op op,
                              Handle comm, StreamHandle stream);
using ncclReduce = Outcome(const void* in, void* out, std::size_t count, Type type, Op op, int root,
                           Handle comm, StreamHandle stream);
using ncclReduceScatter = Outcome(const void* in, void* out, std::size_t count, Type type, Op op,
                                  Handle comm, StreamHandle stream);
using ncclBroadcast = Outcome(const void* in, void* out, std::size_t count, Type type, int root,
                              Handle comm, StreamHandle stream);
using ncclAllGather = Outcome(const void* in, void* out, std::size_t count, Type type, Handle comm,
                              StreamHandle stream);
using ncclSend = Outcome(const void* in, std::size_t count, Type type, int peer, Handle comm,
                         StreamHandle stream);
using ncclRecv = Outcome(void* out, std::size_t count, Type type, int peer, Handle comm,
                         StreamHandle stream);
using ncclRedOpCreatePreMulSum = Outcome(Op* op, void* scalar, Type type, Residence residence,
                                         Handle comm);
using ncclRedOpDestroy = Outcome(Op op, Handle comm);
// From 2.19 on.
using ncclCommRegister = Outcome(Handle comm, void* memory, std::size_t bytes, void** handle);
using ncclCommDeregister = Outcome(Handle comm, void* handle);
// From 2.28 on.
using ncclAlltoAll = Outcome(const void* in, void* out, std::size_t count, Type type, Handle comm,
                             StreamHandle stream);
using ncclGather = Outcome(const void* in, void* out, std::size_t count, Type type, int root,
                           Handle comm, StreamHandle stream);
using ncclScatter = Outcome(const void* in, void* out, std::size_t count, Type type, int root,
                            Handle comm, StreamHandle stream);

}  // namespace hocket::nccl
