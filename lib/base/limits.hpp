// Every limit of the library in one place. A limit is checked where it is used, and what goes past
// it is an error or is cut with a mark: never silently accepted.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hocket::limits {

/// A log line; what is longer is cut and ends in "…".
inline constexpr std::size_t log_line_bytes_max = 4096;

/// What the C ABI keeps of the last error of a thread; what is longer is cut and ends in "…".
inline constexpr std::size_t last_error_bytes_max = 4096;

/// The value of a HOCKET_* variable.
inline constexpr std::size_t variable_bytes_max = 4096;

/// A file that holds a secret, or the place where the ranks of a host meet.
inline constexpr std::size_t private_file_bytes_max = 4096;

/// A file of a network's numbers and rules for the selector.
inline constexpr std::size_t tuning_file_bytes_max = 1 << 20;

/// Ranks of a world.
inline constexpr int world_size_max = 1 << 20;

/// Of the time in which all ranks must arrive: for saying, at its end, who did not.
inline constexpr std::chrono::seconds entry_farewell{2};
/// Of the name of a world or a communicator.
inline constexpr std::size_t name_bytes_max = 64;

/// For all ranks, which have met, to have told each other what they need before they talk.
inline constexpr std::chrono::seconds cards_farewell{5};

/// A list of ranks in a message; what is longer is cut and ends in "…".
inline constexpr std::size_t rank_list_bytes_max = 160;

/// Blocks in all buffers of one rank's plan of a collective operation.
inline constexpr std::uint32_t plan_blocks_max = 1 << 26;

/// Into how many pieces a pipeline cuts what it sends.
inline constexpr std::uint32_t plan_pieces_max = 1024;

/// Vectors that an all-reduce reduces whose bits are the same at every size.
inline constexpr std::uint32_t contributions_max = 1 << 20;

// A proof, of the plans of all ranks together: about 10 GiB at most.
inline constexpr std::uint64_t proof_steps_max = std::uint64_t{1} << 27;
/// Blocks in all buffers.
inline constexpr std::uint64_t proof_blocks_max = std::uint64_t{1} << 27;
/// Blocks that steps touch, counted for each step.
inline constexpr std::uint64_t proof_touched_blocks_max = std::uint64_t{1} << 29;

/// Operations of a communicator that are in flight at once.
inline constexpr std::uint32_t overlap_max = 8;
/// Of the steps of a plan.
inline constexpr std::uint32_t plan_lanes_max = 16;
/// Plans that a communicator keeps for operations to come.
inline constexpr std::size_t plans_kept_max = 64;

// One request to a store.
inline constexpr std::size_t store_key_bytes_max = 8 << 10;
inline constexpr std::size_t store_keys_per_request_max = 128 << 10;
/// All the keys and values of a request, or the values of a reply; and so one value, too.
inline constexpr std::size_t store_message_bytes_max = 64 << 20;
/// An error's text in a reply; what is longer is cut and ends in "…".
inline constexpr std::size_t store_error_bytes_max = 2048;

// One store.
/// All keys and values together, each counted with what keeping it costs.
inline constexpr std::size_t store_bytes_max = std::size_t{1} << 30;
/// The file of a store: every change since its beginning.
inline constexpr std::size_t file_store_bytes_max = std::size_t{1} << 30;
inline constexpr std::size_t store_connections_max = 16 << 10;
/// Connections that have not proved yet who they are; a further one pushes out the oldest.
inline constexpr std::size_t store_strangers_max = 1024;
/// Of all connections: bytes of messages that are not complete yet.
inline constexpr std::size_t store_partial_bytes_max = std::size_t{1} << 30;
/// The same of clients of PyTorch's TCPStore, and what was copied for answers that they don't read.
inline constexpr std::size_t store_torch_bytes_max = std::size_t{256} << 20;
/// Of one connection: requests that wait; a further one is refused.
inline constexpr std::size_t store_parked_per_connection_max = 16 << 10;
/// Of one connection: replies that it does not read. Past that, the server reads no more of it.
inline constexpr std::size_t store_unsent_bytes_max = 1 << 20;

/// Of pinned memory, of which a communicator on device memory has four; and of the device's, if
/// adapters reach that.
inline constexpr std::size_t staging_slot_bytes = 4 << 20;

/// Ops that a transport has taken, and of which it has not said yet that they are over.
inline constexpr std::uint64_t transport_ops_max = 1 << 20;

// Data connections of a rank.
/// Of a channel; HOCKET_TCP_STREAMS.
inline constexpr std::int64_t tcp_streams_max = 64;
/// Addresses of one rank: HOCKET_TCP_INTERFACES.
inline constexpr std::size_t tcp_rails_max = 8;
/// Of a channel over several connections: sent, and not yet in the memory of a receive.
inline constexpr std::uint64_t bundle_bytes_max = 4 << 20;
/// Adapters' ports of one rank: HOCKET_IB_HCA.
inline constexpr std::size_t verbs_rails_max = 4;
/// Of a prepared operation: what is smaller is copied as fast.
inline constexpr std::uint64_t registered_bytes_min = 64 << 10;
/// Stretches of memory of the user that adapters know: what is registered beyond is copied.
inline constexpr std::size_t verbs_regions_max = 1024;
/// With one peer over verbs.
inline constexpr std::size_t verbs_lanes_max = 1 << 20;
/// As store_strangers_max.
inline constexpr std::size_t data_strangers_max = 1024;
/// Made by other ranks for channels that this rank has not opened yet.
inline constexpr std::size_t parked_links_max = 16 << 10;
/// Ranges of lanes that are over, of which a rank remembers that they are. Of older ones it does
/// not: a rank that dials them then waits until its own time is over.
inline constexpr std::size_t closed_lane_ranges_max = 1024;

// Strangers that one listener lets in, whether they prove who they are later or not; who does is
// not counted. More of them wait outside, so that a flood costs the ranks little of their time.
inline constexpr std::int64_t strangers_at_once = 256;
inline constexpr std::int64_t strangers_per_second = 256;
/// So many together, so that a flood wakes the listener seldom.
inline constexpr std::int64_t strangers_together = 32;
/// Of connections that wait outside meanwhile: who belongs to the job is not far behind.
inline constexpr int flooded_backlog = 1024;

/// For both sides of a connection to prove who they are.
inline constexpr std::chrono::seconds handshake_timeout{5};
/// What the other side may send of TLS before it has proved who it is.
inline constexpr std::size_t tls_handshake_bytes_max = 64 << 10;

/// For a store's server to answer a request whose own time is over.
inline constexpr std::chrono::seconds store_answer_timeout{2};

}  // namespace hocket::limits
