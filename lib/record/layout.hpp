// The memory in which a rank records its last operations. It is a file that other processes read:
// `hocket trace` sees what a rank does even if that rank is stopped, hangs, or has been killed. The
// rank holds a lock (flock) on the file, which shows that it lives. Reader and writer must be of
// one version and run on the same kind of machine, so plain structs are enough.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hocket::record {

inline constexpr std::array<char, 8> magic = {'h', 'o', 'c', 'k', 'e', 't', '0', '2'};
/// A part of the file's name by which other processes find it among a process's descriptors.
inline constexpr const char* file_mark = "hocket-trace";
inline constexpr std::uint32_t entries_kept = 4096;
inline constexpr std::uint32_t groups_kept = 128;
inline constexpr std::uint32_t nobody = UINT32_MAX;

/// A communicator is identified by its id in the upper 32 bits and by the world rank of its first
/// member in the lower ones, because all parts of a split have the same id. For device memory it
/// has two more (comm/device_path.hpp): with the first bit for what it moves through the host, with
/// the second for what a library does with whole operations (device/offload.hpp).
inline constexpr std::uint64_t device_bit = std::uint64_t{1} << 63;
inline constexpr std::uint64_t offload_bit = std::uint64_t{1} << 62;

/// What an operation is: a value of plan::Operation, or one of these.
inline constexpr std::uint8_t kind_send = 30;
inline constexpr std::uint8_t kind_receive = 31;
inline constexpr std::size_t kinds_max = 32;

enum class State : std::uint8_t {
  queued,  // behind another operation of its communicator
  running,
  done,
  failed,
};

/// One operation. Times are in nanoseconds of the machine's monotonic clock; 0 means not yet.
struct Entry {
  std::uint64_t sequence = 0;  // its place among all of the rank, from 1; 0 while it is written
  std::uint64_t number = 0;    // its place among those of its communicator, from 1; 0 for a message
  std::uint64_t tag = 0;       // of a collective operation: engine::Tag; of a message: its tag
  std::uint64_t bytes = 0;     // that this rank gives, or for a receive has room for
  std::int64_t begun = 0;      // when the program called it
  std::int64_t arrived = 0;    // when the first segment arrived; 0 for an operation of one segment
  std::int64_t ended = 0;
  std::uint64_t communicator = 0;
  std::uint32_t peer =
      nobody;  // the rank that it waits for, or of a message the other one; else `nobody`
  std::uint32_t step = 0;  // the step of the plan that waits for that rank
  std::uint8_t kind = 0;
  State state = State::queued;
};
static_assert(sizeof(Entry) == 80);

/// A communicator of this rank.
struct GroupEntry {
  std::uint64_t id = 0;
  std::uint32_t rank = 0;
  std::uint32_t size = 0;
  std::uint32_t is_open = 0;
  std::uint32_t unused = 0;
};

/// What has been done of one kind, since the rank joined.
struct Total {
  std::uint64_t done;
  std::uint64_t failed;
  std::uint64_t bytes;
  std::uint64_t nanoseconds;
};

enum class Life : std::uint8_t {
  joined,
  left,  // in order
  // What a copy says, which was made when the rank had not left:
  running,
  stopped,  // by a signal or a debugger
  gone,     // the process had ended
  unknown,  // the file is a plain copy, or was read on another host
};

struct Header {
  std::array<char, 8> magic;
  std::uint32_t entries;
  std::uint32_t entry_bytes;
  std::uint64_t world;  // the same for all ranks of a world, and for no other
  std::uint32_t rank;
  std::uint32_t size;
  std::int32_t pid;
  Life life;
  std::array<std::uint8_t, 3> unused;
  std::uint64_t inode;  // of the file: another one is a copy
  std::array<char, 64> host;
  std::array<char, 32> transport;
  // One moment on two clocks.
  std::int64_t monotonic_time;
  std::int64_t universal_time;
  std::int64_t copy_time;  // monotonic time at which `hocket trace dump` made this copy; else 0
  std::uint64_t operation_count;  // since the rank joined
  std::array<char, 512> failure;  // the first one, as the program was told; ends with a 0
  std::array<Total, kinds_max> totals;
  std::array<GroupEntry, groups_kept> groups;
};

inline constexpr std::size_t entries_at = 8192;
static_assert(sizeof(Header) <= entries_at);
inline constexpr std::size_t file_bytes = entries_at + entries_kept * sizeof(Entry);

}  // namespace hocket::record
