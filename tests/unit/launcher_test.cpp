#include "world/launcher.hpp"

#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using hocket::Environment;
using hocket::Result;
using hocket::StatusCode;
using hocket::world::detect_launcher;
using hocket::world::Detection;
using hocket::world::first_host;
using hocket::world::read_env;

namespace {

using Variables = std::vector<const char*>;

template <class Read>
auto with(Variables variables, Read read) {
  variables.push_back(nullptr);
  return read(Environment(variables.data()));
}

Result<Detection> detect(const Variables& variables) { return with(variables, detect_launcher); }

hocket::world::Launch launch_of(const Variables& variables) {
  const Result<Detection> detection = detect(variables);
  INFO(detection.status().to_string());
  REQUIRE(detection.ok());
  REQUIRE(detection->disagreements.empty());
  return detection->launch;
}

std::string master_of(const hocket::world::Launch& launch) {
  return launch.master ? launch.master->to_string() : "none";
}

std::vector<int> numbers(const hocket::world::Launch& launch) {
  return {launch.rank, launch.size, launch.local_rank, launch.local_size};
}

Variables operator+(Variables a, const Variables& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Variables from_hocket_run = {"HOCKET_STORE=10.0.0.1:4000",
                                   "RANK=5",
                                   "WORLD_SIZE=8",
                                   "LOCAL_RANK=1",
                                   "HOCKET_JOB=j9",
                                   "LOCAL_WORLD_SIZE=4",
                                   "HOCKET_ATTEMPT=2"};
const Variables torchrun = {"RANK=2",
                            "WORLD_SIZE=4",
                            "LOCAL_RANK=0",
                            "LOCAL_WORLD_SIZE=2",
                            "MASTER_ADDR=node0",
                            "MASTER_PORT=29400",
                            "TORCHELASTIC_RUN_ID=run7",
                            "TORCHELASTIC_RESTART_COUNT=3"};
// As Open MPI 4.1.4 and MPICH 4.0.2 set them.
const Variables open_mpi = {
    "OMPI_COMM_WORLD_RANK=1",
    "OMPI_COMM_WORLD_SIZE=2",
    "OMPI_COMM_WORLD_LOCAL_RANK=1",
    "OMPI_COMM_WORLD_LOCAL_SIZE=2",
    "PMIX_RANK=1",
    "PMIX_NAMESPACE=2115895297",
    "OMPI_MCA_orte_precondition_transports=5927b6bba6e30749-1aef4dc0fca989df"};
const Variables mpich = {"PMI_RANK=1", "PMI_SIZE=2", "PMI_FD=6", "MPI_LOCALRANKID=1",
                         "MPI_LOCALNRANKS=2"};
const Variables slurm = {"SLURM_PROCID=5",
                         "SLURM_NTASKS=12",
                         "SLURM_STEP_NUM_TASKS=11",
                         "SLURM_LOCALID=1",
                         "SLURM_NODEID=1",
                         "SLURM_STEP_TASKS_PER_NODE=4(x2),3",
                         "SLURM_STEP_NODELIST=node[07-08,11]",
                         "SLURM_JOB_ID=1234",
                         "SLURM_STEP_ID=0"};
const Variables kubernetes = {"JOB_COMPLETION_INDEX=2", "WORLD_SIZE=3", "MASTER_ADDR=job-0.svc"};

}  // namespace

TEST_CASE("hocket run names a store that it serves") {
  const hocket::world::Launch launch = launch_of(from_hocket_run);
  REQUIRE(launch.launcher == "hocket run");
  REQUIRE(numbers(launch) == std::vector{5, 8, 1, 4});
  REQUIRE(master_of(launch) == "10.0.0.1:4000");
  REQUIRE(launch.master_is_served);
  REQUIRE(launch.job == "j9");
  REQUIRE(launch.attempt == 2);
  REQUIRE_FALSE(launch.is_on_one_host());
}

TEST_CASE("torchrun names rank 0 as the master") {
  const hocket::world::Launch launch = launch_of(torchrun);
  REQUIRE(launch.launcher == "torchrun or env://");
  REQUIRE(numbers(launch) == std::vector{2, 4, 0, 2});
  REQUIRE(master_of(launch) == "node0:29400");
  REQUIRE_FALSE(launch.master_is_served);
  REQUIRE(launch.job == "run7");
  REQUIRE(launch.attempt == 3);
}

TEST_CASE("where torchrun's own store has the port, ours is beside it") {
  const hocket::world::Launch launch =
      launch_of(torchrun + Variables{"TORCHELASTIC_USE_AGENT_STORE=True"});
  REQUIRE(master_of(launch) == "node0:29401");
  REQUIRE(master_of(launch_of(torchrun + Variables{"TORCHELASTIC_USE_AGENT_STORE=False"})) ==
          "node0:29400");
}

TEST_CASE("the plain variables of env:// are enough") {
  const hocket::world::Launch launch = launch_of({"RANK=0", "WORLD_SIZE=1"});
  REQUIRE(numbers(launch) == std::vector{0, 1, -1, -1});
  REQUIRE(master_of(launch) == "none");
  REQUIRE(master_of(launch_of({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=[fd00::1]"})) ==
          "[fd00::1]:29500");
}

TEST_CASE("Open MPI names no master, but the launch") {
  const hocket::world::Launch launch = launch_of(open_mpi);
  REQUIRE(launch.launcher == "Open MPI");
  REQUIRE(numbers(launch) == std::vector{1, 2, 1, 2});
  REQUIRE(launch.is_on_one_host());
  REQUIRE(master_of(launch) == "none");
  REQUIRE(launch.job == "2115895297");
  REQUIRE(launch.family == "openmpi-2115895297-5927b6bba6e30749");
}

TEST_CASE("MPICH names neither") {
  const hocket::world::Launch launch = launch_of(mpich);
  REQUIRE(launch.launcher == "MPICH or Intel MPI");
  REQUIRE(numbers(launch) == std::vector{1, 2, 1, 2});
  REQUIRE(master_of(launch) == "none");
  REQUIRE(launch.family.empty());
}

TEST_CASE("MASTER_ADDR and MASTER_PORT name the master under any launcher") {
  const Variables named = {"MASTER_ADDR=node3", "MASTER_PORT=777"};
  for (const Variables& launcher : {open_mpi, mpich, slurm}) {
    REQUIRE(master_of(launch_of(launcher + named)) == "node3:777");
  }
  REQUIRE(master_of(launch_of(mpich + Variables{"MASTER_ADDR=node3"})) == "node3:29500");
  REQUIRE(master_of(launch_of(from_hocket_run + named)) == "10.0.0.1:4000");
}

TEST_CASE("Slurm's first node is the master, at a port that follows from the step") {
  const hocket::world::Launch launch = launch_of(slurm);
  REQUIRE(launch.launcher == "Slurm");
  REQUIRE(numbers(launch) == std::vector{5, 11, 1, 4});
  REQUIRE(master_of(launch) == "node07:27744");
  REQUIRE(launch.job == "slurm-1234.0");
  REQUIRE(master_of(launch_of(slurm + Variables{"SLURM_STEP_ID=1"})) == "node07:27745");
  REQUIRE(master_of(launch_of(slurm + Variables{"MASTER_PORT=777"})) == "node07:777");
}

TEST_CASE("Slurm's tasks on each node are counted") {
  const auto local_size = [](const char* node, const char* tasks = "") {
    return launch_of(slurm + Variables{node, tasks}).local_size;
  };
  REQUIRE(local_size("SLURM_NODEID=0") == 4);
  REQUIRE(local_size("SLURM_NODEID=2") == 3);
  REQUIRE(local_size("SLURM_NODEID=3") == -1);
  for (const char* tasks : {"SLURM_STEP_TASKS_PER_NODE=x", "SLURM_STEP_TASKS_PER_NODE=4(x",
                            "SLURM_STEP_TASKS_PER_NODE=4(x-2)", "SLURM_STEP_TASKS_PER_NODE=,,"}) {
    REQUIRE(local_size("SLURM_NODEID=1", tasks) == -1);
  }
}

TEST_CASE("the script of a Slurm job is no rank") {
  REQUIRE(detect({"SLURM_PROCID=0", "SLURM_NTASKS=4", "SLURM_JOB_ID=1"}).status().code() ==
          StatusCode::not_found);
  REQUIRE(detect(slurm + Variables{"SLURM_STEP_ID=4294967290"}).status().code() ==
          StatusCode::not_found);
}

TEST_CASE("a pod of an indexed job is told the size and the master") {
  const hocket::world::Launch launch = launch_of(kubernetes);
  REQUIRE(launch.launcher == "Kubernetes");
  REQUIRE(numbers(launch) == std::vector{2, 3, 0, 1});
  REQUIRE(master_of(launch) == "job-0.svc:29500");

  for (const auto& [variable, missing] :
       {std::pair("WORLD_SIZE=3", "MASTER_ADDR"), std::pair("MASTER_ADDR=x", "WORLD_SIZE")}) {
    const auto status = detect({"JOB_COMPLETION_INDEX=2", variable}).status();
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE(status.what() ==
            std::string("JOB_COMPLETION_INDEX is set, but ") + missing + " is not");
    REQUIRE(status.hint().find("completions") != std::string::npos);
  }
}

TEST_CASE("of several launchers the first in our order is believed, and the others are named") {
  const Variables all[] = {from_hocket_run, open_mpi, mpich, slurm};
  Variables together;
  for (auto launcher = std::rbegin(all); launcher != std::rend(all); ++launcher) {
    together = *launcher + together;
    const Result<Detection> detection = detect(together);
    REQUIRE(detection.ok());
    REQUIRE(detection->launch.launcher == launch_of(*launcher).launcher);
  }
  const Result<Detection> detection = detect(together);
  REQUIRE(detection->disagreements.size() == 3);
  REQUIRE(detection->disagreements[0] ==
          "hocket run says rank 5 of 8, but Open MPI says rank 1 of 2; the first is believed");
}

TEST_CASE("launchers that agree are not warned of") {
  REQUIRE(launch_of(open_mpi + Variables{"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=x"}).launcher ==
          "torchrun or env://");
}

TEST_CASE("a job and an attempt that are set by name hold under any launcher") {
  for (const Variables& launcher :
       {from_hocket_run, torchrun, open_mpi, mpich, slurm, kubernetes}) {
    const hocket::world::Launch launch =
        launch_of(launcher + Variables{"HOCKET_JOB=mine", "HOCKET_ATTEMPT=7"});
    REQUIRE(launch.job == "mine");
    REQUIRE(launch.attempt == 7);
  }
}

TEST_CASE("without a launcher the message says what to set") {
  const auto nobody = detect({"PATH=/bin"}).status();
  REQUIRE(nobody.code() == StatusCode::not_found);
  REQUIRE(nobody.hint().find("hocket run") != std::string::npos);
  const std::string by_pmix(detect({"PMIX_RANK=1"}).status().what());
  REQUIRE(by_pmix.find("PMIX_RANK, but no size") != std::string::npos);
  const std::string half(detect({"RANK=1"}).status().what());
  REQUIRE(half.find("RANK is set, but WORLD_SIZE is not") != std::string::npos);
}

TEST_CASE("nonsense is refused with the variable's name") {
  const std::pair<Variables, const char*> rows[] = {
      {{"RANK=x", "WORLD_SIZE=2"}, R"(RANK="x" is not a number from 0 to)"},
      {{"RANK=-1", "WORLD_SIZE=2"}, "RANK"},
      {{"RANK=0", "WORLD_SIZE=0"}, "WORLD_SIZE"},
      {{"RANK=0", "WORLD_SIZE=99999999"}, "WORLD_SIZE"},
      {{"RANK=2", "WORLD_SIZE=2"}, "rank 2 of 2"},
      {{"RANK=0", "WORLD_SIZE=2", "LOCAL_RANK=5", "LOCAL_WORLD_SIZE=2"}, "local rank 5 of 2"},
      {{"RANK=0", "WORLD_SIZE=2", "LOCAL_WORLD_SIZE=3"}, "of 3"},
      {{"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=x", "MASTER_PORT=70000"}, "MASTER_PORT"},
      {{"RANK=0", "WORLD_SIZE=2", "HOCKET_ATTEMPT=often"}, "HOCKET_ATTEMPT"},
      {{"HOCKET_STORE=x", "RANK=0", "WORLD_SIZE=2"}, "HOCKET_STORE"},
      {{"HOCKET_STORE=x:1", "RANK=0"}, "WORLD_SIZE"},
  };
  for (const auto& [variables, named] : rows) {
    const auto status = detect(variables).status();
    CAPTURE(status.to_string());
    REQUIRE(status.code() == StatusCode::invalid_argument);
    REQUIRE(status.to_string().find(named) != std::string::npos);
  }
}

TEST_CASE("env:// reads its own variables, whatever launcher there is") {
  const Result<hocket::world::Launch> launch = with(slurm + torchrun, read_env);
  REQUIRE(launch.ok());
  REQUIRE(launch->rank == 2);
  const auto status = with(slurm, read_env).status();
  REQUIRE(status.what().find("RANK") != std::string::npos);
  REQUIRE_FALSE(status.hint().empty());
}

TEST_CASE("the first host of Slurm's lists") {
  constexpr std::pair<std::string_view, std::string_view> rows[] = {
      {"node7", "node7"},
      {"node7,node8", "node7"},
      {"node[01-03,7],login", "node01"},
      {"node[5]", "node5"},
      {"a-b[3,5-6]", "a-b3"},
      {"rack[1-2]node[01-03]x,y[1]", "rack1node01x"},
      {"", ""},
      {"node[", "node"},
      {"node[]", "node"},
      {"node[1-2", "node1"},
      {"[[]]", "[]"},
  };
  for (const auto& [list, host] : rows) {
    CAPTURE(list);
    REQUIRE(first_host(list) == host);
  }
}
