// Configuration by HOCKET_* variables, of the environment or of the program's settings. A variable
// exists when it stands in `variables` below: one place for its name, type, default and help.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/setting.hpp"
#include "hocket/status.hpp"

#include "base/clock.hpp"
#include "base/log.hpp"

namespace hocket {

enum class ValueKind { text, boolean, integer, size, duration, choice };

[[nodiscard]] std::string_view name(ValueKind kind) noexcept;

/// One of a variable's choices.
struct Choice {
  std::size_t index = 0;
};

/// What a person sees of a variable.
struct VariableInfo {
  std::string_view name;
  ValueKind kind = ValueKind::text;
  std::string_view fallback = {};  // written as a person would write it
  std::span<const std::string_view> choices = {};
  std::string_view help;
  bool is_secret = false;      // its text is shown to nobody
  bool is_of_process = false;  // it holds for the whole process, so that a world can't have its own
};

template <class T>
inline constexpr ValueKind kind_of = ValueKind::text;
template <>
inline constexpr ValueKind kind_of<bool> = ValueKind::boolean;
template <>
inline constexpr ValueKind kind_of<std::int64_t> = ValueKind::integer;
template <>
inline constexpr ValueKind kind_of<std::uint64_t> = ValueKind::size;
template <>
inline constexpr ValueKind kind_of<Duration> = ValueKind::duration;
template <>
inline constexpr ValueKind kind_of<Choice> = ValueKind::choice;

/// A variable whose value is a T: std::string or one of the types above. Its kind follows from T.
template <class T>
struct Variable : VariableInfo {
  constexpr explicit Variable(VariableInfo info) : VariableInfo(info) { kind = kind_of<T>; }
};

namespace variables {

inline constexpr Variable<Choice> log_level{{
    .name = "HOCKET_LOG_LEVEL",
    .fallback = "warning",
    .choices = log::level_names,
    .help = "the most detailed log lines that are written",
    .is_of_process = true,
}};

inline constexpr std::string_view simd_levels[] = {"best", "avx512", "avx2",
                                                   "sse4", "neon",   "none"};
inline constexpr Variable<Choice> simd{{
    .name = "HOCKET_SIMD",
    .fallback = "best",
    .choices = simd_levels,
    .help = "the widest vector instructions that reductions use; results are the same with all",
    .is_of_process = true,
}};

inline constexpr Variable<std::string> rendezvous{{
    .name = "HOCKET_RENDEZVOUS",
    .help = "the URL by which the ranks meet: env://, tcp://HOST:PORT or file:///PATH; without it "
            "the launcher is asked",
}};
inline constexpr Variable<std::string> store{{
    .name = "HOCKET_STORE",
    .help = "HOST:PORT of the store that the launcher serves; every rank is its client",
}};
inline constexpr Variable<Duration> store_timeout{{
    .name = "HOCKET_STORE_TIMEOUT",
    .fallback = "5m",
    .help = "for all ranks to arrive, and for each later request to the store",
}};
inline constexpr Variable<std::string> job{{
    .name = "HOCKET_JOB",
    .help = "the name of this run, the same for all its ranks; those of another run are refused",
}};
inline constexpr Variable<std::int64_t> attempt{{
    .name = "HOCKET_ATTEMPT",
    .fallback = "0",
    .help = "how often this job was started anew; ranks of different attempts don't meet",
}};
inline constexpr Variable<std::string> secret{{
    .name = "HOCKET_SECRET",
    .help = "what all ranks of a job know and nobody else does; they prove it to each other",
    .is_secret = true,
}};
inline constexpr Variable<std::string> secret_file{{
    .name = "HOCKET_SECRET_FILE",
    .help = "the file that holds the secret, if HOCKET_SECRET is not set; only its owner may read "
            "it",
}};
inline constexpr Variable<bool> allow_without_secret{{
    .name = "HOCKET_ALLOW_WITHOUT_SECRET",
    .fallback = "0",
    .help = "serve other hosts without a secret: everybody who reaches the port may join",
}};
inline constexpr std::string_view tls_modes[] = {"off", "psk", "certificate"};
inline constexpr Variable<Choice> tls{{
    .name = "HOCKET_TLS",
    .fallback = "off",
    .choices = tls_modes,
    .help = "encrypt the connections of a job with TLS 1.3: psk by its secret, certificate by the "
            "files below; the same for all its ranks",
}};
inline constexpr Variable<std::string> tls_certificate_file{{
    .name = "HOCKET_TLS_CERTIFICATE_FILE",
    .help = "this side's certificate for HOCKET_TLS=certificate, in PEM",
}};
inline constexpr Variable<std::string> tls_key_file{{
    .name = "HOCKET_TLS_KEY_FILE",
    .help = "the key of that certificate, without a passphrase",
}};
inline constexpr Variable<std::string> tls_ca_file{{
    .name = "HOCKET_TLS_CA_FILE",
    .help = "the authorities from which the other side's certificate may come",
}};
inline constexpr Variable<std::string> interface {
  {
    .name = "HOCKET_INTERFACE",
    .help =
        "the network interface by which other ranks reach this one: names, beginnings of "
        "names, =NAME, networks such as 10.0.0.0/8; ^ before the list excludes",
  }
};

inline constexpr Variable<std::string> algorithm{{
    .name = "HOCKET_ALGORITHM",
    .help =
        "rules that choose algorithms, such as all_reduce:0-4K=one_shot,broadcast@2-8=chain/16; "
        "the same on all ranks",
}};
inline constexpr Variable<std::string> tuning_file{{
    .name = "HOCKET_TUNING_FILE",
    .help = "the file of the network's numbers and of rules by which algorithms are chosen; the "
            "same on all ranks",
}};
inline constexpr Variable<std::int64_t> overlap{{
    .name = "HOCKET_OVERLAP",
    .fallback = "1",
    .help = "how many collectives of a communicator may be under way at once, from 1 to 8, over "
            "connections of their own; the same on all ranks",
}};
inline constexpr Variable<std::string> transport{{
    .name = "HOCKET_TRANSPORT",
    .help =
        "the transport that carries messages, as `hocket info` lists them, or several with commas, "
        "for ranks that don't all have the first; without it those that can serve",
}};
inline constexpr Variable<Duration> host_timeout{{
    .name = "HOCKET_HOST_TIMEOUT",
    .fallback = "30s",
    .help = "how long another host may leave unanswered what is sent to it before its ranks count "
            "as lost, at least 1500ms; a rank that is late on a host that answers never does",
    .is_of_process = true,
}};
inline constexpr Variable<Duration> failure_timeout{{
    .name = "HOCKET_FAILURE_TIMEOUT",
    .fallback = "2s",
    .help = "after how long without a sign of life a rank counts as lost, at least 250ms; 0 waits "
            "for ever, as when a debugger holds a rank",
}};
inline constexpr Variable<Duration> stall_warning{{
    .name = "HOCKET_STALL_WARNING",
    .fallback = "30s",
    .help =
        "after how long an operation that waits for another rank is reported in the log; 0 never",
}};
inline constexpr Variable<std::string> trace{{
    .name = "HOCKET_TRACE",
    .fallback = "on",
    .help =
        "where each rank records its last operations for `hocket trace`: on (in its memory), off "
        "(nowhere), or a folder, in which each rank keeps a file that outlives it",
}};
inline constexpr Variable<std::int64_t> tcp_streams{{
    .name = "HOCKET_TCP_STREAMS",
    .fallback = "1",
    .help = "connections for each lane between two ranks over TCP, from 1 to 64; the same for all "
            "ranks",
}};
inline constexpr Variable<std::string> tcp_interfaces{{
    .name = "HOCKET_TCP_INTERFACES",
    .help = "the network interfaces over which TCP carries messages, several at once: a list as "
            "HOCKET_INTERFACE has, one address for each item; without it one",
}};
inline constexpr Variable<std::string> ib_hca{{
    .name = "HOCKET_IB_HCA",
    .help = "the RDMA adapters that carry messages over verbs, several at once: mlx5_0, =mlx5_0 or "
            "mlx5_0:1, separated by commas, in the same order on all hosts; ^ before the list "
            "excludes; without it the best one",
}};
inline constexpr Variable<std::int64_t> ib_gid_index{{
    .name = "HOCKET_IB_GID_INDEX",
    .fallback = "-1",
    .help = "which of the adapter's GIDs is ours; -1: RoCE v2 before v1, IPv4 before IPv6",
}};
inline constexpr Variable<std::int64_t> ib_tc{{
    .name = "HOCKET_IB_TC",
    .fallback = "0",
    .help = "the traffic class of what goes over verbs, from 0 to 255: DSCP times 4 with RoCE v2",
}};
inline constexpr Variable<std::int64_t> ib_sl{{
    .name = "HOCKET_IB_SL",
    .fallback = "0",
    .help = "the service level of what goes over verbs, from 0 to 15",
}};
inline constexpr Variable<std::string> transport_path{{
    .name = "HOCKET_TRANSPORT_PATH",
    .help = "transports to load: files, or folders of them, separated by colons",
}};

inline constexpr Variable<std::string> device_module{{
    .name = "HOCKET_DEVICE_MODULE",
    .help = "the module by which device memory is reached: its file, or none; without it "
            "hocket_cuda.so of this installation",
    .is_of_process = true,
}};
inline constexpr Variable<bool> nccl{{
    .name = "HOCKET_NCCL",
    .fallback = "1",
    .help = "whether NCCL may do collectives on device memory, if it may on all ranks; else the "
            "host's transport carries them",
}};
inline constexpr Variable<std::string> nccl_library{{
    .name = "HOCKET_NCCL_LIBRARY",
    .help = "the file of NCCL, if it is not loaded already; without it libnccl.so.2, as the system "
            "finds it",
    .is_of_process = true,
}};
inline constexpr Variable<bool> gpudirect{{
    .name = "HOCKET_GPUDIRECT",
    .fallback = "0",
    .help = "whether adapters may send from device memory and write to it, where they can on all "
            "ranks; else all goes through memory of the host, as long as no real device has "
            "tried it",
}};

/// Every variable of Hocket, in the order people read them.
[[nodiscard]] std::span<const VariableInfo* const> all() noexcept;

}  // namespace variables

/// The variables that were set, checked on reading.
class Config {
 public:
  /// Reads the entries of `environment` (null-terminated, "NAME=value") that begin with HOCKET_.
  /// An empty value counts as unset, and so does one that is not valid, about which a complaint is
  /// kept, as about a name that is unknown.
  explicit Config(const char* const* environment,
                  std::span<const VariableInfo* const> known = variables::all());
  /// The same for a list of settings, such as TransportOptions::settings: wrong ones are
  /// complaints.
  explicit Config(std::span<const Setting> settings,
                  std::span<const VariableInfo* const> known = variables::all());

  /// Returns a copy with these settings in place of its own. Fails at the first that is unknown,
  /// invalid or for the whole process.
  [[nodiscard]] Result<Config> with(std::span<const Setting> settings) const;

  /// The value set, or the variable's default.
  template <class T>
  [[nodiscard]] T get(const Variable<T>& variable) const;

  /// The text that was set; nothing when the default holds.
  [[nodiscard]] std::optional<std::string_view> text_of(const VariableInfo& variable) const;

  /// Whether it was set to an invalid value. For variables whose default would then be unsafe.
  [[nodiscard]] bool is_invalid(const VariableInfo& variable) const;

  /// The same for a person to read: "(set)" in place of a secret.
  [[nodiscard]] std::optional<std::string_view> shown(const VariableInfo& variable) const;

  /// All variables that are set and valid, secrets included.
  [[nodiscard]] std::vector<Setting> settings() const;

  /// One sentence each: which variable, what is wrong, what it could be.
  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept { return complaints_; }

 private:
  /// Why a variable is not taken, and what is used instead.
  struct Complaint {
    std::string what = {};
    std::string instead = {};  // empty if the variable is unknown
  };
  /// Takes a variable, or returns a complaint.
  [[nodiscard]] std::optional<Complaint> read(std::string_view name, std::string_view value);
  void read_or_complain(std::string_view name, std::string_view value);

  std::span<const VariableInfo* const> known_;
  std::map<std::string_view, std::string> values_;  // keys live in the registry
  std::set<std::string_view> invalid_;              // names; so do they
  std::vector<std::string> complaints_;
};

/// The job's secret: HOCKET_SECRET, else what HOCKET_SECRET_FILE names holds, less the end of its
/// last line. Empty for none.
[[nodiscard]] Result<std::string> read_secret(const Config& config);

/// This process's environment, read at the first call, which also sets the log's level, echoes
/// every variable that is set (level info) and warns of complaints.
[[nodiscard]] const Config& process_config();

}  // namespace hocket
