// Our declarations of NCCL's functions against those of its header: compiling it is the test.
#include <cstddef>
#include <type_traits>

#include <nccl.h>

#include "transports/nccl/abi.hpp"

namespace hocket::nccl {
namespace {

/// What an argument is in the binary interface: enumerations and opaque pointers are alike.
template <class T>
struct Binary {
  using Type = T;
};
template <class T>
requires std::is_enum_v<T>
struct Binary<T> {
  using Type = int;
};
template <class T>
requires std::is_pointer_v<T>
struct Binary<T> {
  using Type = void*;
};
template <class T>
requires(std::is_class_v<T> && sizeof(T) == sizeof(::ncclUniqueId)) struct Binary<T> {
  using Type = UniqueId;
};

template <class Function>
struct Signature;
template <class Result, class... Arguments>
struct Signature<Result(Arguments...)> {
  using Type =
      typename Binary<Result>::Type(typename Binary<std::remove_const_t<Arguments>>::Type...);
};

template <class Ours, class Theirs>
constexpr bool is_same =
    std::is_same_v<typename Signature<Ours>::Type, typename Signature<Theirs>::Type>;

#define HOCKET_SAME(name) static_assert(is_same<nccl::name, decltype(::name)>)
HOCKET_SAME(ncclGetVersion);
HOCKET_SAME(ncclGetErrorString);
HOCKET_SAME(ncclGetLastError);
HOCKET_SAME(ncclGetUniqueId);
HOCKET_SAME(ncclCommInitRankConfig);
HOCKET_SAME(ncclCommSplit);
HOCKET_SAME(ncclCommFinalize);
HOCKET_SAME(ncclCommDestroy);
HOCKET_SAME(ncclCommAbort);
HOCKET_SAME(ncclCommGetAsyncError);
HOCKET_SAME(ncclGroupStart);
HOCKET_SAME(ncclGroupEnd);
HOCKET_SAME(ncclAllReduce);
HOCKET_SAME(ncclReduce);
HOCKET_SAME(ncclReduceScatter);
HOCKET_SAME(ncclBroadcast);
HOCKET_SAME(ncclAllGather);
HOCKET_SAME(ncclSend);
HOCKET_SAME(ncclRecv);
HOCKET_SAME(ncclRedOpCreatePreMulSum);
HOCKET_SAME(ncclRedOpDestroy);
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
HOCKET_SAME(ncclCommRegister);
HOCKET_SAME(ncclCommDeregister);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
HOCKET_SAME(ncclAlltoAll);
HOCKET_SAME(ncclGather);
HOCKET_SAME(ncclScatter);
#endif
#undef HOCKET_SAME

static_assert(sizeof(UniqueId) == sizeof(::ncclUniqueId));

#define HOCKET_SAME(ours, theirs)                                             \
  static_assert(offsetof(Config, ours) == offsetof(::ncclConfig_t, theirs) && \
                std::is_same_v<decltype(Config::ours), decltype(::ncclConfig_t::theirs)>)
HOCKET_SAME(size, size);
HOCKET_SAME(magic, magic);
HOCKET_SAME(version, version);
HOCKET_SAME(blocking, blocking);
HOCKET_SAME(cga_cluster_size, cgaClusterSize);
HOCKET_SAME(min_ctas, minCTAs);
HOCKET_SAME(max_ctas, maxCTAs);
HOCKET_SAME(net_name, netName);
HOCKET_SAME(split_share, splitShare);
#undef HOCKET_SAME
constexpr ::ncclConfig_t initial = NCCL_CONFIG_INITIALIZER;
static_assert(Config{}.magic == initial.magic);
static_assert(undefined == NCCL_CONFIG_UNDEF_INT && no_color == NCCL_SPLIT_NOCOLOR);
static_assert(version_of(2, 18, 5) == NCCL_VERSION(2, 18, 5));

#define HOCKET_SAME(ours, theirs) static_assert(static_cast<int>(ours) == static_cast<int>(theirs))
HOCKET_SAME(success, ncclSuccess);
HOCKET_SAME(unhandled_cuda_error, ncclUnhandledCudaError);
HOCKET_SAME(system_error, ncclSystemError);
HOCKET_SAME(internal_error, ncclInternalError);
HOCKET_SAME(invalid_argument, ncclInvalidArgument);
HOCKET_SAME(invalid_usage, ncclInvalidUsage);
HOCKET_SAME(remote_error, ncclRemoteError);
HOCKET_SAME(in_progress, ncclInProgress);
HOCKET_SAME(int8, ncclInt8);
HOCKET_SAME(uint8, ncclUint8);
HOCKET_SAME(int32, ncclInt32);
HOCKET_SAME(uint32, ncclUint32);
HOCKET_SAME(int64, ncclInt64);
HOCKET_SAME(uint64, ncclUint64);
HOCKET_SAME(float16, ncclFloat16);
HOCKET_SAME(float32, ncclFloat32);
HOCKET_SAME(float64, ncclFloat64);
HOCKET_SAME(bfloat16, ncclBfloat16);
HOCKET_SAME(sum, ncclSum);
HOCKET_SAME(prod, ncclProd);
HOCKET_SAME(max, ncclMax);
HOCKET_SAME(min, ncclMin);
HOCKET_SAME(avg, ncclAvg);
HOCKET_SAME(scalar_on_device, ncclScalarDevice);
HOCKET_SAME(scalar_on_host, ncclScalarHostImmediate);
#undef HOCKET_SAME

}  // namespace
}  // namespace hocket::nccl
