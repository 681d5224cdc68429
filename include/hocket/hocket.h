/* Hocket's C ABI. Stable within a major ABI version (hocket_abi_version).
 *
 * Conventions:
 *  1. Every function that can fail returns hocket_status; HOCKET_OK is 0.
 *  2. After a failure hocket_last_error() gives the whole story as text: who, what, where and a
 * hint. HOCKET_IN_PROGRESS is no failure.
 *  3. No C++ exception crosses this header, and no function installs a signal handler.
 *  4. Enumerations have fixed values and travel as int32_t, so that new values can be added.
 *  5. A pointer argument is borrowed until the function returns, unless its comment says otherwise.
 *  6. Strings that are returned are UTF-8, NUL-terminated and owned by the library.
 *  7. Structs that begin with struct_size, for input or output: set it to sizeof before the call,
 * and of an input all that you don't use to zero. A struct of an older header is understood; of a
 * newer one too, if what is not known here is zero.
 *  8. Handles are made by one function and freed by another, which takes NULL as well.
 *  9. A timeout is an int64_t in nanoseconds and means the same in every struct and function: 0 is
 * the default that its comment names, HOCKET_NO_WAIT is no time at all (what can be done at once is
 * done), and any other negative value is HOCKET_INVALID_ARGUMENT.
 * 10. Any thread may call any function, and several may use one handle at once, with these
 * exceptions: no other call may use a handle that is being freed or detached, and a hocket_prepared
 * or a hocket_values is for one thread at a time. All ranks must begin the operations of a
 * communicator in one order, so threads that begin different operations must agree on it. They run
 * one after the other. If the variable HOCKET_OVERLAP is above 1, up to that many collectives on
 * host memory are in flight at once, and may end in any order; a barrier may end before an earlier
 * collective. Memory that one in flight uses must then not be passed to another one, unless both
 * only read it; this also holds for hocket_start_many and for starting a hocket_prepared again. No
 * thread may change the environment (setenv) while another one calls
 * Hocket: the HOCKET_* variables are read at the first call that needs them.
 * 11. Handles do not survive fork(): in the child every function that takes one of its parent's
 * fails at once with HOCKET_INVALID_ARGUMENT, except those that free it, that only say what it is
 * (rank, size, transport, host, local rank and size, rank_in, a buffer's address, a queue's
 * descriptor), and hocket_comm_abort, which does nothing. The child may join a world of its own. A
 * program that is executed gets no descriptor.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "hocket/export.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef int32_t hocket_status;
enum {
  HOCKET_OK = 0,
  HOCKET_INVALID_ARGUMENT = 1,  /* the call itself is wrong */
  HOCKET_UNSUPPORTED = 2,       /* a right call that this build, machine or data type can't serve */
  HOCKET_TIMEOUT = 3,           /* a deadline passed */
  HOCKET_PEER_LOST = 4,         /* another rank died or can't be reached */
  HOCKET_ABORTED = 5,           /* the communicator was aborted */
  HOCKET_MISMATCH = 6,          /* ranks disagree about an operation or about the world */
  HOCKET_PERMISSION_DENIED = 7, /* authentication failed */
  HOCKET_LIMIT_EXCEEDED = 8,    /* a limit of this library or of the system was reached */
  HOCKET_SYSTEM_ERROR = 9,      /* the operating system refused a call */
  HOCKET_PROTOCOL_ERROR = 10,   /* the other side sent what the protocol does not allow */
  HOCKET_NOT_FOUND = 11,
  HOCKET_ALREADY_EXISTS = 12,
  HOCKET_INTERNAL = 13,   /* a defect in Hocket: please report it */
  HOCKET_IN_PROGRESS = 14 /* the operation has not ended yet */
};

#define HOCKET_NO_WAIT INT64_MIN /* a timeout: convention 9 */

typedef int32_t hocket_dtype;
enum {
  HOCKET_I8 = 0,
  HOCKET_U8 = 1,
  HOCKET_I16 = 2,
  HOCKET_U16 = 3,
  HOCKET_I32 = 4,
  HOCKET_U32 = 5,
  HOCKET_I64 = 6,
  HOCKET_U64 = 7,
  HOCKET_F16 = 8,     /* IEEE 754 binary16 */
  HOCKET_BF16 = 9,    /* the upper half of an f32 */
  HOCKET_F8E4M3 = 10, /* OCP E4M3: no infinity, largest value 448 */
  HOCKET_F8E5M2 = 11, /* OCP E5M2 */
  HOCKET_F32 = 12,
  HOCKET_F64 = 13,
  HOCKET_BOOL = 14, /* one byte; anything but 0 is true, results are 0 or 1 */
  HOCKET_C64 = 15,  /* complex: two f32 */
  HOCKET_C128 = 16, /* complex: two f64 */
  HOCKET_BYTES_BASE = 0x4000
};
/* Elements of n bytes, whatever they are: for moving, and for HOCKET_OP_CUSTOM. n: 1 to
 * HOCKET_BYTES_MAX. */
#define HOCKET_BYTES_MAX 4096
#define HOCKET_BYTES(n) (HOCKET_BYTES_BASE + (n))

typedef int32_t hocket_op;
enum {
  HOCKET_OP_SUM = 0,
  HOCKET_OP_PRODUCT = 1,
  HOCKET_OP_MIN = 2,
  HOCKET_OP_MAX = 3,
  HOCKET_OP_AVERAGE = 4,    /* the sum over all ranks divided by their number */
  HOCKET_OP_PREMUL_SUM = 5, /* every contribution times a factor, then the sum */
  HOCKET_OP_BIT_AND = 6,
  HOCKET_OP_BIT_OR = 7,
  HOCKET_OP_BIT_XOR = 8,
  HOCKET_OP_LOGICAL_AND = 9,
  HOCKET_OP_LOGICAL_OR = 10,
  HOCKET_OP_CUSTOM = 11 /* the caller's own function */
};

typedef int32_t hocket_log_level;
enum { HOCKET_LOG_ERROR = 0, HOCKET_LOG_WARNING = 1, HOCKET_LOG_INFO = 2, HOCKET_LOG_DEBUG = 3 };

/* The release, such as "0.2.0". */
HOCKET_API const char* hocket_version(void);

/* Changes when a program compiled against an older header must be compiled again. */
HOCKET_API int32_t hocket_abi_version(void);

/* "ok", "timeout", …; "unknown" for a value this library does not know. */
HOCKET_API const char* hocket_status_name(hocket_status status);

/* Why the last failing call on this thread failed; "" before any. Valid until the next failing
 * call. */
HOCKET_API const char* hocket_last_error(void);

/* The failure that hocket_last_error() describes, in numbers; -1 means not known. */
typedef struct hocket_failure {
  size_t struct_size;
  hocket_status status;
  int32_t rank;         /* the rank that noticed it */
  int32_t peer;         /* the other rank that it concerns */
  int32_t step;         /* the step of the operation's plan */
  int32_t system_error; /* an errno value; 0 for none */
} hocket_failure;

/* Fills in the last failure on this thread; status is HOCKET_OK if there was none. */
HOCKET_API hocket_status hocket_last_failure(hocket_failure* failure);

/* "f32", …; "bytes" for HOCKET_BYTES; "unknown" for a value this library does not know. */
HOCKET_API const char* hocket_dtype_name(hocket_dtype dtype);

/* Bytes of one element; 0 for a value this library does not know. */
HOCKET_API size_t hocket_dtype_size(hocket_dtype dtype);

/* "sum", …; "unknown" for a value this library does not know. */
HOCKET_API const char* hocket_op_name(hocket_op op);

/* out[i] = a[i] op b[i] on this process alone, with the arithmetic that collectives use. Any
 * alignment; out may be a or b, any other overlap is refused. The ops that need a collective
 * (average, premul_sum, custom) are unsupported here. */
HOCKET_API hocket_status hocket_reduce_local(void* out, const void* a, const void* b, size_t count,
                                             hocket_dtype dtype, hocket_op op);

/* A HOCKET_* variable and its value; "" or NULL stands for the default. */
typedef struct hocket_setting {
  const char* name;
  const char* value;
} hocket_setting;

/* ---- Stores: docs in hocket/store.hpp ---- */

typedef struct hocket_store hocket_store;
typedef struct hocket_store_server hocket_store_server;

/* A list of byte strings. The caller frees a list that a function returns through hocket_values**,
 * with hocket_values_free; a function of hocket_store_functions only adds to the list that it gets.
 * Pointers into it are valid until hocket_values_add or hocket_values_free. */
typedef struct hocket_values hocket_values;
HOCKET_API size_t hocket_values_count(const hocket_values* values);
/* A NUL follows the last byte. NULL if index is too large. */
HOCKET_API const char* hocket_values_data(const hocket_values* values, size_t index);
HOCKET_API size_t hocket_values_size(const hocket_values* values, size_t index);
/* Appends a copy; for the functions of hocket_store_functions. */
HOCKET_API hocket_status hocket_values_add(hocket_values* values, const void* data, size_t size);
HOCKET_API void hocket_values_free(hocket_values* values);

typedef struct hocket_store_options {
  size_t struct_size;
  const char* url;    /* tcp://HOST:PORT or file:///PATH */
  int64_t timeout_ns; /* to connect, and the store's default; 0: HOCKET_STORE_TIMEOUT */
  const hocket_setting* settings;
  size_t setting_count;
} hocket_store_options;

/* Opens a store that several processes share. */
HOCKET_API hocket_status hocket_store_open(const hocket_store_options* options,
                                           hocket_store** store);
/* For the threads of this process. */
HOCKET_API hocket_status hocket_store_make_local(hocket_store** store);
/* Key k of part is "prefix/k" of whole, which may be freed before it. */
HOCKET_API hocket_status hocket_store_make_prefix(hocket_store* whole, const char* prefix,
                                                  hocket_store** part);

/* A program's own store. Any thread may call its functions, also several at once, from the time it
 * is made until release is called, which may be after hocket_store_free: worlds keep their store.
 * They return HOCKET_OK, HOCKET_TIMEOUT if what they wait for is missing at the end of the timeout,
 * or another error code. timeout_ns is above zero or HOCKET_NO_WAIT, never 0. Keys are
 * NUL-terminated, values are any bytes. Arguments are borrowed until the function returns. */
typedef struct hocket_store_functions {
  size_t struct_size;
  void* context; /* the first argument of each function */
  /* Called once, when nothing uses the store any more, from any thread; not if making the store
   * failed. May be NULL. */
  void (*release)(void* context);
  hocket_status (*set)(void* context, const char* key, const void* value, size_t size,
                       int64_t timeout_ns);
  /* Waits until the key is there, then adds its value to the list. */
  hocket_status (*get)(void* context, const char* key, int64_t timeout_ns, hocket_values* value);
  /* Waits until all keys are there. */
  hocket_status (*wait)(void* context, const char* const* keys, size_t count, int64_t timeout_ns);
  hocket_status (*check)(void* context, const char* const* keys, size_t count, int64_t timeout_ns,
                         int32_t* are_there);
  hocket_status (*add)(void* context, const char* key, int64_t amount, int64_t timeout_ns,
                       int64_t* sum);
  /* Sets the key if it holds what is expected, or if it is missing and nothing is expected. Then
   * adds to the list what the key holds now, or nothing if it is missing. */
  hocket_status (*compare_set)(void* context, const char* key, const void* expected,
                               size_t expected_size, const void* desired, size_t desired_size,
                               int64_t timeout_ns, int32_t* is_set, hocket_values* value);
  hocket_status (*delete_key)(void* context, const char* key, int64_t timeout_ns,
                              int32_t* was_there);
  /* These may be NULL. Without append or multi_get, the functions above replace them; without keys,
   * hocket_store_keys is unsupported. multi_set and barrier always use the functions above;
   * num_keys and queues are unsupported. */
  hocket_status (*append)(void* context, const char* key, const void* more, size_t size,
                          int64_t timeout_ns);
  hocket_status (*multi_get)(void* context, const char* const* keys, size_t count,
                             int64_t timeout_ns, hocket_values* values);
  hocket_status (*keys)(void* context, const char* prefix, int64_t timeout_ns, hocket_values* keys);
} hocket_store_functions;

/* functions is copied. */
HOCKET_API hocket_status hocket_store_make_custom(const hocket_store_functions* functions,
                                                  hocket_store** store);
/* The store itself goes when no world and no part of it uses it any more. */
HOCKET_API void hocket_store_free(hocket_store* store);

/* timeout_ns 0 means the store's default. */
HOCKET_API hocket_status hocket_store_set(hocket_store* store, const char* key, const void* value,
                                          size_t size, int64_t timeout_ns);
/* Waits until the key is there. */
HOCKET_API hocket_status hocket_store_get(hocket_store* store, const char* key, int64_t timeout_ns,
                                          hocket_values** value);
HOCKET_API hocket_status hocket_store_multi_set(hocket_store* store, const char* const* keys,
                                                const void* const* values, const size_t* sizes,
                                                size_t count, int64_t timeout_ns);
/* Waits until all keys are there. */
HOCKET_API hocket_status hocket_store_multi_get(hocket_store* store, const char* const* keys,
                                                size_t count, int64_t timeout_ns,
                                                hocket_values** values);
HOCKET_API hocket_status hocket_store_wait(hocket_store* store, const char* const* keys,
                                           size_t count, int64_t timeout_ns);
HOCKET_API hocket_status hocket_store_check(hocket_store* store, const char* const* keys,
                                            size_t count, int64_t timeout_ns, int32_t* are_there);
/* sum may be NULL. */
HOCKET_API hocket_status hocket_store_add(hocket_store* store, const char* key, int64_t amount,
                                          int64_t timeout_ns, int64_t* sum);
HOCKET_API hocket_status hocket_store_append(hocket_store* store, const char* key, const void* more,
                                             size_t size, int64_t timeout_ns);
/* is_set and value may be NULL. value is an empty list if the key is missing now. */
HOCKET_API hocket_status hocket_store_compare_set(hocket_store* store, const char* key,
                                                  const void* expected, size_t expected_size,
                                                  const void* desired, size_t desired_size,
                                                  int64_t timeout_ns, int32_t* is_set,
                                                  hocket_values** value);
/* was_there may be NULL. */
HOCKET_API hocket_status hocket_store_delete_key(hocket_store* store, const char* key,
                                                 int64_t timeout_ns, int32_t* was_there);
HOCKET_API hocket_status hocket_store_num_keys(hocket_store* store, int64_t timeout_ns,
                                               int64_t* count);
/* Those that begin with prefix, sorted. */
HOCKET_API hocket_status hocket_store_keys(hocket_store* store, const char* prefix,
                                           int64_t timeout_ns, hocket_values** keys);
HOCKET_API hocket_status hocket_store_queue_push(hocket_store* store, const char* key,
                                                 const void* value, size_t size,
                                                 int64_t timeout_ns);
/* Waits until there is an element. */
HOCKET_API hocket_status hocket_store_queue_pop(hocket_store* store, const char* key,
                                                int64_t timeout_ns, hocket_values** value);
HOCKET_API hocket_status hocket_store_queue_length(hocket_store* store, const char* key,
                                                   int64_t timeout_ns, int64_t* length);
/* Waits until size calls have come. */
HOCKET_API hocket_status hocket_store_barrier(hocket_store* store, const char* name, int64_t size,
                                              int64_t timeout_ns);

typedef struct hocket_store_server_options {
  size_t struct_size;
  const char* host; /* NULL: 127.0.0.1; "": all addresses of this host, which needs a secret */
  uint16_t port;    /* 0: one that is free */
  const hocket_setting* settings;
  size_t setting_count;
  int32_t serves_torch; /* 1: also serves clients of PyTorch's TCPStore */
} hocket_store_server_options;

/* options may be NULL. */
HOCKET_API hocket_status hocket_store_server_start(const hocket_store_server_options* options,
                                                   hocket_store_server** server);
HOCKET_API uint16_t hocket_store_server_port(const hocket_store_server* server);
HOCKET_API void hocket_store_server_free(hocket_store_server* server);

/* ---- Worlds and communicators: docs in hocket/communicator.hpp and hocket/collective.hpp ---- */

typedef struct hocket_comm hocket_comm;
typedef struct hocket_work hocket_work;
typedef struct hocket_prepared hocket_prepared;
typedef struct hocket_buffer hocket_buffer;

typedef struct hocket_join_options {
  size_t struct_size;
  const char* url;              /* NULL or "": HOCKET_RENDEZVOUS, else what the launcher says */
  int64_t timeout_ns;           /* for all ranks to be there; 0: HOCKET_STORE_TIMEOUT */
  int64_t operation_timeout_ns; /* of operations that name none; 0: 30 minutes */
  const char* name;             /* of the world; NULL or "": none */
  /* For this world, instead of what the environment says. A name or a value that is wrong is an
   * error, and so is a variable that holds for the whole process (`hocket info --env`). */
  const hocket_setting* settings;
  size_t setting_count;
  hocket_store* store; /* in which the ranks meet, instead of one at a URL; or NULL */
  int32_t rank;        /* which rank this is, if size is above 0 */
  int32_t size;        /* how many ranks; 0, with rank 0: the URL or the launcher says both */
} hocket_join_options;

/* Returns when all ranks are there. options may be NULL. A process may join any number of worlds:
 * the n-th call of a rank meets the n-th of the others, counted for each name by itself. */
HOCKET_API hocket_status hocket_join(const hocket_join_options* options, hocket_comm** comm);
/* Meets the other ranks as hocket_join does, but makes no connections between them. rank and size
 * may be NULL. *store is an empty store that all ranks share; free it with hocket_store_free. */
HOCKET_API hocket_status hocket_meet(const hocket_join_options* options, int32_t* rank,
                                     int32_t* size, hocket_store** store);
/* Says good-bye to the other ranks of all worlds of this process, so that they don't take its end
 * for a death. exit() and the return from main() do it by themselves: this is for programs that end
 * by _exit() or quick_exit(). Nothing of these worlds may be used afterwards. */
HOCKET_API void hocket_leave_all_worlds(void);
/* Works, prepared operations and buffers may outlive it, and keep its world alive. */
HOCKET_API void hocket_comm_free(hocket_comm* comm);
/* This rank's number in comm, -1 for NULL; and how many ranks comm has, 0 for NULL. */
HOCKET_API int32_t hocket_comm_rank(const hocket_comm* comm);
HOCKET_API int32_t hocket_comm_size(const hocket_comm* comm);
/* The transports that carry its messages, the best first: "tcp" or "shm,tcp". */
HOCKET_API const char* hocket_comm_transport(const hocket_comm* comm);
/* The name of the host on which that rank runs, valid while comm exists; NULL if there is no such
 * rank. */
HOCKET_API const char* hocket_comm_host(const hocket_comm* comm, int32_t rank);
/* This rank's number among the ranks of comm on its host, and how many those are. */
HOCKET_API int32_t hocket_comm_local_rank(const hocket_comm* comm);
HOCKET_API int32_t hocket_comm_local_size(const hocket_comm* comm);
/* The number in other of the process that is rank in comm; -1 if it is not in other, if there is no
 * such rank, or if other belongs to another world: hocket_last_error() says which. */
HOCKET_API int32_t hocket_comm_rank_in(const hocket_comm* comm, const hocket_comm* other,
                                       int32_t rank);

/* Ends comm: operations and messages that are in flight, and all later ones, fail with
 * HOCKET_ABORTED and the reason (NULL or "": none); on other ranks they name this rank. Any thread
 * may call this, also while others wait. It returns at once and takes effect here within about a
 * millisecond, on other ranks some 30 ms later; until then an operation may still succeed. Only the
 * first reason counts, and a comm that has failed keeps its first error. Does nothing in a child
 * made by fork(). */
HOCKET_API void hocket_comm_abort(hocket_comm* comm, const char* reason);

/* All ranks of comm call these, in the same order as its operations. A rank that is in no new
 * communicator gets NULL. */
HOCKET_API hocket_status hocket_comm_split(hocket_comm* comm, int32_t color, int32_t key,
                                           hocket_comm** part);
HOCKET_API hocket_status hocket_comm_dup(hocket_comm* comm, hocket_comm** copy);

/* Makes a communicator of these ranks, in this order. Each of them calls it with the same ranks,
 * order and name; another rank that calls it gets NULL at once. It waits until all members have
 * called it, at most timeout_ns (0: comm's operation_timeout_ns; HOCKET_NO_WAIT: all others must
 * have called it already). Otherwise all members fail, also those that call later: with
 * HOCKET_TIMEOUT, and hocket_last_error() names who is missing; with HOCKET_MISMATCH if two gave
 * different orders; with HOCKET_PEER_LOST if a member died. Then all that are left must call it
 * again. comm never fails by it.
 *
 * The nth call with the same ranks and name on one rank meets the nth on the others. Calls with
 * other ranks or another name do not wait for each other. name: at most 64 letters, digits, '.',
 * '_' and '-'; NULL or "": none. It may be called in any order with operations, also if comm has
 * failed: those that are left after a death may go on together, while the store is there. */
HOCKET_API hocket_status hocket_comm_group(hocket_comm* comm, const int32_t* ranks, size_t count,
                                           const char* name, int64_t timeout_ns,
                                           hocket_comm** group);

typedef int32_t hocket_kind;
enum {
  HOCKET_KIND_ALL_REDUCE = 0,
  HOCKET_KIND_REDUCE_SCATTER = 1,
  HOCKET_KIND_ALL_GATHER = 2,
  HOCKET_KIND_BROADCAST = 3,
  HOCKET_KIND_REDUCE = 4,
  HOCKET_KIND_GATHER = 5,
  HOCKET_KIND_SCATTER = 6,
  HOCKET_KIND_ALL_TO_ALL = 7,
  HOCKET_KIND_BARRIER = 8,
  HOCKET_KIND_SCAN = 9,   /* of the ranks up to this one; neither takes HOCKET_OP_AVERAGE */
  HOCKET_KIND_EXSCAN = 10 /* of those below it: rank 0 gets nothing, its out is left as it is */
};

typedef int32_t hocket_memory;
enum {
  HOCKET_MEMORY_DETECT = 0, /* asked of the device's runtime */
  HOCKET_MEMORY_HOST = 1,
  HOCKET_MEMORY_PINNED = 2,
  HOCKET_MEMORY_DEVICE = 3,
  HOCKET_MEMORY_MANAGED = 4
};

/* Where the memory lies: HOCKET_MEMORY_HOST without a runtime of a device, and of NULL. Fails where
 * the runtime can't say. */
HOCKET_API hocket_status hocket_memory_kind(const void* memory, hocket_memory* kind);

/* out[i] = a[i] op b[i], associative; out may be a or b. If it is not commutative, set keeps_order
 * of the hocket_collective. All three may be unaligned for their type. Called from any thread, but
 * never twice at once in one world. If it is written in C++ and throws, the operation and its
 * communicator fail with HOCKET_ABORTED. */
typedef void (*hocket_reduce_function)(void* context, void* out, const void* a, const void* b,
                                       size_t count, hocket_dtype dtype);

/* Called once when the operation has ended; not if it could not begin. hocket_run and
 * hocket_prepared_run without a stream, and hocket_run_message, call it on the calling thread
 * before they return. Otherwise a thread of the library calls it soon after the end.
 * hocket_work_wait and hocket_work_free do not wait for that call, so the context must live until
 * then. The function may wait and call Hocket. */
typedef void (*hocket_end_function)(void* context, hocket_status status);

/* One of many vectors that one operation takes. They are copied into one buffer and back, except if
 * they are contiguous in memory, or if together they have at least 4 KiB and each message of the
 * chosen algorithm lies in at most two of them, as is usual with one piece for each rank. */
typedef struct hocket_piece {
  void* data;
  size_t count; /* elements */
} hocket_piece;

/* ---- Completion queues: docs in hocket/queue.hpp ---- */

typedef struct hocket_queue hocket_queue;
typedef struct hocket_completion hocket_completion;

/* Makes an empty queue. */
HOCKET_API hocket_status hocket_queue_create(hocket_queue** queue);
/* Readable while a completion can be taken. It belongs to the queue: only watch it. */
HOCKET_API int hocket_queue_fd(const hocket_queue* queue);
/* Takes the completion of an operation that has ended, the oldest first. Waits for one, at most
 * timeout_ns; 0: for ever. HOCKET_OK: completion says which operation it was and how it ended; if
 * it failed, hocket_last_error() says why. HOCKET_IN_PROGRESS: none has ended in time. */
HOCKET_API hocket_status hocket_queue_next(hocket_queue* queue, int64_t timeout_ns,
                                           hocket_completion* completion);
/* Waits until all operations that report there have ended. */
HOCKET_API void hocket_queue_free(hocket_queue* queue);

typedef struct hocket_collective {
  size_t struct_size;
  hocket_kind kind;
  hocket_dtype dtype;
  const void* in;       /* NULL where this rank gives nothing */
  void* out;            /* NULL where it gets nothing */
  size_t count;         /* elements: of the whole, or of one rank's part where ranks have parts */
  const size_t* counts; /* instead of count, if parts differ: one for each rank; or NULL */
  const size_t* counts_from; /* of all_to_all with counts: of the parts from each rank */
  hocket_op op;
  int32_t root;
  double factor;                 /* of HOCKET_OP_PREMUL_SUM */
  hocket_reduce_function custom; /* of HOCKET_OP_CUSTOM */
  void* custom_context;
  int64_t timeout_ns;         /* 0: the communicator's operation_timeout_ns */
  hocket_end_function on_end; /* or NULL */
  void* on_end_context;
  const hocket_piece*
      pieces; /* of all_reduce and broadcast: instead of in, out and count; or NULL */
  size_t piece_count;
  hocket_memory memory; /* of what kind it is, when you know */
  int32_t has_stream;   /* nonzero: it begins behind what `stream` has */
  void* stream;         /* a cudaStream_t, not cudaStreamPerThread; NULL: the legacy default */
  hocket_queue* queue;  /* where it reports its end, if it is started; or NULL. Then its work may be
                         * freed at once, and its memory is borrowed until it has been reported */
  uint64_t queue_tag;   /* comes back with the completion */
  /* Of any kind, instead of in or of out: what lies one behind the other in what this rank gives
   * or gets. Not of device memory. */
  const hocket_piece* in_pieces;
  size_t in_piece_count;
  const hocket_piece* out_pieces;
  size_t out_piece_count;
  int32_t keeps_order; /* nonzero: the result is r0 op r1 op r2 … in the order of the ranks; only
                        * the parentheses may differ. The same on all ranks. Fewer algorithms can
                        * do this, so it may take longer. No effect on what NCCL carries out */
} hocket_collective;

/* Runs an operation until it is over; or, if it has a stream, puts it there: unless it is staged
 * (docs/device.md), for which no stream can wait. */
HOCKET_API hocket_status hocket_run(hocket_comm* comm, const hocket_collective* collective);
/* Starts it; it goes on in the background. */
HOCKET_API hocket_status hocket_start(hocket_comm* comm, const hocket_collective* collective,
                                      hocket_work** work);
/* Its memory stays mapped as long as what is prepared or a work of it lives. */
HOCKET_API hocket_status hocket_prepare(hocket_comm* comm, const hocket_collective* collective,
                                        hocket_prepared** prepared);
HOCKET_API hocket_status hocket_prepared_run(hocket_prepared* prepared);
HOCKET_API hocket_status hocket_prepared_start(hocket_prepared* prepared, hocket_work** work);
HOCKET_API void hocket_prepared_free(hocket_prepared* prepared);

/* Zeroed memory of the host, aligned to 4096 bytes. Any operation may use it; the adapters of
 * comm's world know it and move it without copies. Free it after the operations on it. Until then
 * it keeps comm's world alive. */
HOCKET_API hocket_status hocket_allocate(hocket_comm* comm, size_t size, hocket_buffer** buffer);
HOCKET_API void* hocket_buffer_data(const hocket_buffer* buffer);
HOCKET_API void hocket_buffer_free(hocket_buffer* buffer);

/* These run one operation each and wait for its end; hocket_run runs the other kinds. In place:
 * hocket_all_reduce takes one buffer as in and out. For hocket_reduce_scatter and hocket_all_gather
 * the smaller buffer is this rank's part of the larger one, rank * part_count elements behind its
 * beginning. */
HOCKET_API hocket_status hocket_all_reduce(hocket_comm* comm, const void* in, void* out,
                                           size_t count, hocket_dtype dtype, hocket_op op);
HOCKET_API hocket_status hocket_reduce_scatter(hocket_comm* comm, const void* in, void* out,
                                               size_t part_count, hocket_dtype dtype, hocket_op op);
HOCKET_API hocket_status hocket_all_gather(hocket_comm* comm, const void* in, void* out,
                                           size_t part_count, hocket_dtype dtype);
HOCKET_API hocket_status hocket_broadcast(hocket_comm* comm, void* data, size_t count,
                                          hocket_dtype dtype, int32_t root);
HOCKET_API hocket_status hocket_barrier(hocket_comm* comm);
/* Waits until all ranks have called it. If some have not come when the first rank's timeout ends,
 * every rank gets HOCKET_TIMEOUT, also one that comes later; hocket_last_error() lists the missing
 * ranks, and the communicator stays usable. The nth call on one rank belongs to the nth call on
 * every other, so after a timeout all ranks must call it again. Does not wait for other operations.
 * timeout_ns 0: the communicator's operation_timeout_ns; HOCKET_NO_WAIT: only looks. */
HOCKET_API hocket_status hocket_monitored_barrier(hocket_comm* comm, int64_t timeout_ns);

#define HOCKET_ANY_RANK (-1)
#define HOCKET_ANY_TAG (-1)

typedef int32_t hocket_message_kind;
enum { HOCKET_MESSAGE_RECV = 0, HOCKET_MESSAGE_SEND = 1 };

typedef struct hocket_message {
  size_t struct_size;
  hocket_message_kind kind;
  hocket_dtype dtype;
  void* data; /* a send only reads it */
  size_t count;
  int32_t peer;               /* 0 is rank 0; HOCKET_ANY_RANK for a receive from any */
  int32_t tag;                /* from 0 on; HOCKET_ANY_TAG for a receive of any */
  int64_t timeout_ns;         /* 0: the communicator's operation_timeout_ns */
  hocket_end_function on_end; /* or NULL */
  void* on_end_context;
  int32_t fails_alone; /* of a receive, nonzero: if its timeout expires before a message for it has
                        * arrived, comm goes on, and only this call fails */
  hocket_queue* queue; /* as in hocket_collective */
  uint64_t queue_tag;  /* comes back with the completion */
} hocket_message;

/* Starts collectives and messages of any kinds and types, in this order, as one operation: it has
 * ended when all of them have, and fails if one of them fails. Entry i is in exactly one of the two
 * lists; the other list has NULL there, or is itself NULL. All memory is on the host, and no entry
 * has a queue, an on_end or a stream of its own. If an argument is wrong, this fails, and nothing
 * has begun. queue: as in hocket_collective; or NULL. */
HOCKET_API hocket_status hocket_start_many(hocket_comm* comm,
                                           const hocket_collective* const* collectives,
                                           const hocket_message* const* messages, size_t count,
                                           hocket_queue* queue, uint64_t queue_tag,
                                           hocket_work** work);

typedef struct hocket_received {
  int32_t peer;
  int32_t tag;
  size_t count;
} hocket_received;

struct hocket_completion {
  size_t struct_size;
  uint64_t tag; /* the operation's queue_tag */
  hocket_status status;
  int32_t is_received;      /* nonzero: of a receive that went well */
  hocket_received received; /* then what it got */
};

/* received may be NULL. */
HOCKET_API hocket_status hocket_run_message(hocket_comm* comm, const hocket_message* message,
                                            hocket_received* received);
HOCKET_API hocket_status hocket_start_message(hocket_comm* comm, const hocket_message* message,
                                              hocket_work** work);
HOCKET_API hocket_status hocket_send(hocket_comm* comm, const void* data, size_t count,
                                     hocket_dtype dtype, int32_t peer, int32_t tag);
HOCKET_API hocket_status hocket_recv(hocket_comm* comm, void* data, size_t count,
                                     hocket_dtype dtype, int32_t peer, int32_t tag,
                                     hocket_received* received);

/* Waits until the operation has ended, at most timeout_ns; 0: until it has ended, which its own
 * timeout bounds. HOCKET_OK: it went well. HOCKET_IN_PROGRESS: it has not ended, and goes on.
 * Anything else: why it failed. */
HOCKET_API hocket_status hocket_work_wait(hocket_work* work, int64_t timeout_ns);
/* Of an operation on device memory: what is put into the stream from now on waits for it; this
 * thread does only if it is staged (docs/device.md). hocket_work_free does not wait then. Fails if
 * it is known that the operation has failed. */
HOCKET_API hocket_status hocket_work_wait_stream(hocket_work* work, void* stream);
/* Makes progress and returns at once with HOCKET_IN_PROGRESS if the operation has not ended;
 * otherwise returns what hocket_work_wait would. After a failure it may take up to 0.2 s to find
 * out why. */
HOCKET_API hocket_status hocket_work_test(hocket_work* work);
/* Calls the function once, soon after the operation has ended, as on_end is called. There may be
 * several for one work, which may be freed before. In the function, hocket_last_error() says why
 * the operation failed. Of an operation on device memory, the call waits while another thread
 * begins one. */
HOCKET_API hocket_status hocket_work_then(hocket_work* work, hocket_end_function function,
                                          void* context);
/* Frees work without waiting: the operation goes on by itself. Its memory is borrowed until release
 * is called, once, as on_end is; NULL: the memory is always there. In release, hocket_last_error()
 * says why the operation failed. If this fails, work is kept. */
HOCKET_API hocket_status hocket_work_detach(hocket_work* work, hocket_end_function release,
                                            void* context);
/* Of a receive that is over and went well. */
HOCKET_API hocket_status hocket_work_received(const hocket_work* work, hocket_received* received);
/* Waits until one work has ended, and sets which to its index. HOCKET_OK also if that operation
 * failed: hocket_work_test says how it ended. Take it out of the list before the next call, or it
 * will be returned again. */
HOCKET_API hocket_status hocket_wait_any(hocket_work* const* works, size_t count, size_t* which);
/* Waits until all have ended. If any failed, it then fails as the first failed one in the list. */
HOCKET_API hocket_status hocket_wait_all(hocket_work* const* works, size_t count);
/* Waits until it is over: its memory is borrowed. */
HOCKET_API void hocket_work_free(hocket_work* work);

/* Receives every log line of at most the configured level. Calls never overlap. It must not call
 * Hocket; message is valid during the call only. */
typedef void (*hocket_log_sink)(void* context, hocket_log_level level, const char* message);

/* Sends the log to sink instead of stderr; NULL goes back to stderr. When this returns, the former
 * sink is not running and will not be called again. */
HOCKET_API void hocket_set_log_sink(hocket_log_sink sink, void* context);

#ifdef __cplusplus
}
#endif
