#include "world/launcher.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/limits.hpp"
#include "base/text.hpp"

namespace hocket::world {
namespace {

constexpr std::uint16_t default_port = 29500;  // torch's

/// Takes numbers out of an environment; the first that is none is kept as the fault.
class Numbers {
 public:
  explicit Numbers(const Environment& environment) noexcept : environment_(environment) {}

  /// -1 when the variable is not set.
  int take(std::string_view name, int min = 0, int max = limits::world_size_max) {
    const std::string_view text = environment_.get(name);
    if (text.empty()) return -1;
    const auto number = parse_integer(text);
    if (number && *number >= min && *number <= max) return static_cast<int>(*number);
    if (fault_.ok()) {
      fault_ = Status(
          StatusCode::invalid_argument,
          fmt::format("{}=\"{}\" is not a number from {} to {}", name, cut(text, 64), min, max));
    }
    return -1;
  }

  [[nodiscard]] const Status& fault() const noexcept { return fault_; }

 private:
  const Environment& environment_;
  Status fault_;
};

// --- what each launcher says ---

std::optional<net::Endpoint> read_master(const Environment& environment, Numbers& numbers,
                                         std::uint16_t port = default_port) {
  const int told = numbers.take("MASTER_PORT", 0, UINT16_MAX);
  if (!environment.has("MASTER_ADDR")) return std::nullopt;
  std::string_view host = environment.get("MASTER_ADDR");
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return net::Endpoint{.host = std::string(host),
                       .port = told >= 0 ? static_cast<std::uint16_t>(told) : port};
}

Result<Launch> read_ranks(const Environment& environment, Numbers& numbers) {
  if (!environment.has("RANK") || !environment.has("WORLD_SIZE")) {
    return Status(StatusCode::not_found, "env:// needs RANK and WORLD_SIZE, and not both are set")
        .with_hint("set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or start with hocket run");
  }
  return Launch{
      .rank = numbers.take("RANK"),
      .size = numbers.take("WORLD_SIZE", 1),
      .local_rank = numbers.take("LOCAL_RANK"),
      .local_size = numbers.take("LOCAL_WORLD_SIZE", 1),
  };
}

Result<Launch> read_hocket_run(const Environment& environment, Numbers& numbers) {
  Result<Launch> launch = read_ranks(environment, numbers);
  if (!launch.ok()) {
    return Status(StatusCode::invalid_argument,
                  "HOCKET_STORE is set, but not both RANK and WORLD_SIZE")
        .with_hint("hocket run sets all three; set the others too, or unset HOCKET_STORE");
  }
  Result<net::Endpoint> master = net::parse_endpoint(environment.get("HOCKET_STORE"));
  if (!master.ok()) {
    return Status(StatusCode::invalid_argument, "HOCKET_STORE is wrong").caused_by(master.status());
  }
  launch->master = *std::move(master);
  launch->master_is_served = true;
  return launch;
}

Result<Launch> read_torchrun(const Environment& environment, Numbers& numbers) {
  Result<Launch> launch = read_ranks(environment, numbers);
  if (!launch.ok()) return launch;
  launch->master = read_master(environment, numbers);
  launch->attempt = std::max(0, numbers.take("TORCHELASTIC_RESTART_COUNT"));
  if (const auto run = environment.get("TORCHELASTIC_RUN_ID"); run != "none") launch->job = run;
  // On MASTER_PORT then listens a store of torchrun's own, which does not speak our protocol.
  const bool is_taken = environment.get("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (is_taken && launch->master) launch->master->port ^= 1;
  return launch;
}

Result<Launch> read_open_mpi(const Environment& environment, Numbers& numbers) {
  Launch launch = {
      .rank = numbers.take("OMPI_COMM_WORLD_RANK"),
      .size = numbers.take("OMPI_COMM_WORLD_SIZE", 1),
      .local_rank = numbers.take("OMPI_COMM_WORLD_LOCAL_RANK"),
      .local_size = numbers.take("OMPI_COMM_WORLD_LOCAL_SIZE", 1),
      .master = read_master(environment, numbers),
      .job = std::string(environment.get("PMIX_NAMESPACE")),
  };
  if (launch.job.empty()) launch.job = environment.get("OMPI_MCA_ess_base_jobid");
  // Numbers of jobs come again; this key of one job is random.
  const std::string_view key = environment.get("OMPI_MCA_orte_precondition_transports");
  if (!launch.job.empty())
    launch.family = fmt::format("openmpi-{}-{}", launch.job, key.substr(0, 16));
  return launch;
}

Result<Launch> read_mpich(const Environment& environment, Numbers& numbers) {
  return Launch{
      .rank = numbers.take("PMI_RANK"),
      .size = numbers.take("PMI_SIZE", 1),
      .local_rank = numbers.take("MPI_LOCALRANKID"),
      .local_size = numbers.take("MPI_LOCALNRANKS", 1),
      .master = read_master(environment, numbers),
  };
}

/// Tasks on this node: of "4(x2),3" 4, 4 and 3.
int slurm_local_size(const Environment& environment) {
  std::string_view list = environment.get("SLURM_STEP_TASKS_PER_NODE");
  auto node = parse_integer(environment.get("SLURM_NODEID")).value_or(-1);
  while (!list.empty() && node >= 0) {
    const std::string_view entry = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), entry.size() + 1));
    const std::size_t times = entry.find("(x");
    const auto tasks = parse_integer(entry.substr(0, times));
    const auto nodes =
        times == std::string_view::npos || !entry.ends_with(')')
            ? std::int64_t{1}
            : parse_integer(entry.substr(times + 2, entry.size() - times - 3)).value_or(0);
    if (!tasks || *tasks < 1 || *tasks > limits::world_size_max) return -1;
    if (node < nodes) return static_cast<int>(*tasks);
    node -= nodes;
  }
  return -1;
}

/// The same on all ranks of a step and another for the next one, below the ports that systems hand
/// out by themselves.
std::uint16_t slurm_port(std::int64_t job, std::int64_t step) {
  return static_cast<std::uint16_t>(20000 + (job * 16 + step % 16) % 12000);
}

Result<Launch> read_slurm(const Environment& environment, Numbers& numbers) {
  const std::string_view job = environment.get("SLURM_JOB_ID");
  const std::string_view step = environment.get("SLURM_STEP_ID");
  const std::uint16_t port = slurm_port(std::max<std::int64_t>(0, parse_integer(job).value_or(0)),
                                        std::max<std::int64_t>(0, parse_integer(step).value_or(0)));
  const bool knows_step = environment.has("SLURM_STEP_NUM_TASKS");
  Launch launch = {
      .rank = numbers.take("SLURM_PROCID"),
      .size = numbers.take(knows_step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS", 1),
      .local_rank = numbers.take("SLURM_LOCALID"),
      .local_size = slurm_local_size(environment),
      .master = read_master(environment, numbers, port),
      .job = fmt::format("slurm-{}.{}", job, step),
  };
  for (const std::string_view list : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (launch.master || !environment.has(list)) continue;
    const int told = numbers.take("MASTER_PORT", 0, UINT16_MAX);
    launch.master = net::Endpoint{.host = first_host(environment.get(list)),
                                  .port = told >= 0 ? static_cast<std::uint16_t>(told) : port};
  }
  return launch;
}

Result<Launch> read_kubernetes(const Environment& environment, Numbers& numbers) {
  constexpr std::string_view hint =
      "set WORLD_SIZE to the job's completions, and MASTER_ADDR to the name of the pod of index 0, "
      "which a headless service gives it";
  for (const std::string_view needed : {"WORLD_SIZE", "MASTER_ADDR"}) {
    if (environment.has(needed)) continue;
    return Status(StatusCode::invalid_argument,
                  fmt::format("JOB_COMPLETION_INDEX is set, but {} is not", needed))
        .with_hint(std::string(hint));
  }
  return Launch{
      .rank = numbers.take("JOB_COMPLETION_INDEX"),
      .size = numbers.take("WORLD_SIZE", 1),
      .local_rank = 0,
      .local_size = 1,
      .master = read_master(environment, numbers),
  };
}

// --- which of them it is ---

bool is_slurm_step(const Environment& environment) {
  // The script of a batch job and an interactive shell have a rank too, but were not started n
  // times.
  constexpr std::int64_t step_max = 0xffff'fff0 - 1;
  const auto step = parse_integer(environment.get("SLURM_STEP_ID"));
  return environment.has("SLURM_PROCID") && step && *step <= step_max;
}

struct Launcher {
  std::string_view name;
  bool (*started)(const Environment& environment);
  Result<Launch> (*read)(const Environment& environment, Numbers& numbers);
};

constexpr Launcher launchers[] = {
    {"hocket run", [](const Environment& e) { return e.has("HOCKET_STORE"); }, read_hocket_run},
    {"torchrun or env://",
     [](const Environment& e) { return e.has("RANK") && e.has("WORLD_SIZE"); }, read_torchrun},
    {"Open MPI",
     [](const Environment& e) {
       return e.has("OMPI_COMM_WORLD_RANK") && e.has("OMPI_COMM_WORLD_SIZE");
     },
     read_open_mpi},
    {"MPICH or Intel MPI",
     // Slurm's and others' PMI sets the first two as well.
     [](const Environment& e) {
       return e.has("PMI_RANK") && e.has("PMI_SIZE") && e.has("MPI_LOCALRANKID");
     },
     read_mpich},
    {"Slurm", is_slurm_step, read_slurm},
    {"Kubernetes", [](const Environment& e) { return e.has("JOB_COMPLETION_INDEX"); },
     read_kubernetes},
};

Status check_launch(const Launch& launch) {
  if (launch.rank >= 0 && launch.size >= 1 && launch.rank < launch.size &&
      launch.local_rank < std::max(launch.local_size, launch.size) &&
      launch.local_size <= launch.size) {
    return {};
  }
  return {
      StatusCode::invalid_argument,
      fmt::format("{} says rank {} of {} and local rank {} of {}, which is impossible",
                  launch.launcher, launch.rank, launch.size, launch.local_rank, launch.local_size)};
}

Result<Launch> read_launch(const Launcher& launcher, const Environment& environment) {
  Numbers numbers(environment);
  Result<Launch> launch = launcher.read(environment, numbers);
  if (!launch.ok()) return launch;
  launch->launcher = launcher.name;
  if (environment.has("HOCKET_JOB")) launch->job = environment.get("HOCKET_JOB");
  const int attempt = numbers.take("HOCKET_ATTEMPT", 0, INT32_MAX);
  if (attempt >= 0) launch->attempt = attempt;
  if (!numbers.fault().ok()) {
    return Status(StatusCode::invalid_argument,
                  fmt::format("{} started this process, but one of its variables is wrong",
                              launcher.name))
        .caused_by(numbers.fault());
  }
  Status status = check_launch(*launch);
  return status.ok() ? std::move(launch) : std::move(status);
}

Status nobody(const Environment& environment) {
  std::string what = "nothing says which rank this process is";
  if (environment.has("PMIX_RANK")) {
    what += ": a PMIx launcher set PMIX_RANK, but no size of the world";
  } else if (environment.has("RANK") || environment.has("WORLD_SIZE")) {
    what +=
        fmt::format(": {} is set, but {} is not", environment.has("RANK") ? "RANK" : "WORLD_SIZE",
                    environment.has("RANK") ? "WORLD_SIZE" : "RANK");
  }
  return Status(StatusCode::not_found, std::move(what))
      .with_hint(
          "start it with `hocket run -n 4 -- PROGRAM`, torchrun, mpirun or srun, or set RANK, "
          "WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
}

}  // namespace

Result<Detection> detect_launcher(const Environment& environment) {
  std::optional<Detection> found;
  for (const Launcher& launcher : launchers) {
    if (!launcher.started(environment)) continue;
    Result<Launch> launch = read_launch(launcher, environment);
    if (!found) {
      if (!launch.ok()) return launch.status();
      found = Detection{.launch = *std::move(launch), .disagreements = {}};
      continue;
    }
    const Launch& used = found->launch;
    if (!launch.ok() || (launch->rank == used.rank && launch->size == used.size)) continue;
    found->disagreements.push_back(fmt::format(
        "{} says rank {} of {}, but {} says rank {} of {}; the first is believed", used.launcher,
        used.rank, used.size, launch->launcher, launch->rank, launch->size));
  }
  if (!found) return nobody(environment);
  return *std::move(found);
}

Result<Launch> read_env(const Environment& environment) {
  return read_launch(launchers[environment.has("HOCKET_STORE") ? 0 : 1], environment);
}

std::string first_host(std::string_view list) {
  std::string host;
  // There may be several brackets, as in "rack[1-2]node[01-03,7]".
  while (!list.empty() && list.front() != ',') {
    const bool is_range = list.front() == '[';
    const std::size_t end = is_range ? list.find(']') : list.find_first_of(",[");
    std::string_view part = list.substr(0, end);
    list.remove_prefix(part.size());
    if (is_range) {
      part = part.substr(1, part.find_first_of("-,]") - 1);
      list.remove_prefix(std::min<std::size_t>(list.size(), 1));
    }
    host += part;
  }
  return host;
}

}  // namespace hocket::world
