#include "info.hpp"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

#include "base/config.hpp"
#include "base/environment.hpp"
#include "base/text.hpp"
#include "device/offload.hpp"
#include "device/runtime.hpp"
#include "engine/transports.hpp"
#include "net/interfaces.hpp"
#include "page.hpp"
#include "program/json.hpp"
#include "reduce/kernel.hpp"
#include "world/launcher.hpp"

namespace hocket::cli {
namespace {

using program::Json;

struct Build {
  std::string_view version = hocket::version();
  int abi_version = hocket_abi_version();
  std::string_view compiler = HOCKET_COMPILER;
  std::string_view type = HOCKET_BUILD_TYPE;
  std::string_view sanitizer = HOCKET_SANITIZER;
};

struct Machine {
  std::string processor;
  std::string architecture;
  std::string system;
  int cpus = 0;
  int cpus_usable = 0;  // fewer where this process was bound to some of them
};

/// Of a transport, of a device, or of what works on one.
struct Availability {
  std::string name = {};
  std::string summary = {};
  std::string reason = {};  // why it is not available; empty when it is
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

Machine machine() {
  utsname system{};
  uname(&system);
  const auto cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  cpu_set_t usable;
  const bool is_known = sched_getaffinity(0, sizeof usable, &usable) == 0;
  return {
      .processor = processor_name(),
      .architecture = system.machine,
      .system = fmt::format("{} {}", system.sysname, system.release),
      .cpus = cpus,
      .cpus_usable = is_known ? CPU_COUNT(&usable) : cpus,
  };
}

const engine::FoundTransports& found_transports() {
  static const auto found =
      engine::find_transports(process_config().get(variables::transport_path));
  return found;
}

/// What is missing, and what to do about it.
std::string sentence(const Status& status) {
  return status.hint().empty() ? std::string(status.what())
                               : fmt::format("{}; {}", status.what(), status.hint());
}

/// NCCL, and the devices that it is for: what is missing first.
Availability nccl_state() {
  Availability state = {.name = "nccl"};
  const device::OffloadKind* const kind = device::built_in_offload();
  if (kind == nullptr) {
    state.reason = "this Hocket was built with -Dnccl=disabled";
    return state;
  }
  if (const auto& runtime = device::process_runtime(); !runtime.ok()) {
    state.reason = fmt::format("it needs device memory: {}", runtime.status().what());
  } else if (const auto version = kind->version(); !version.ok()) {
    state.reason = sentence(version.status());
  } else {
    state.summary = fmt::format("{}: version {}", kind->summary, *version);
  }
  return state;
}

/// What reaches device memory, or why nothing does.
Availability device_state() {
  const auto& runtime = device::process_runtime();
  if (!runtime.ok()) return {.name = "cuda", .reason = sentence(runtime.status())};
  return {.name = (*runtime).table().name, .summary = (*runtime).describe()};
}

std::vector<std::string> row_of(const Availability& state) {
  return {state.name, state.reason.empty() ? fmt::format("yes: {}", state.summary)
                                           : fmt::format("no: {}", state.reason)};
}

Json list_of(const std::vector<Availability>& states) {
  Json list = Json::array();
  for (const Availability& each : states) {
    list.push_back({{"name", each.name},
                    {"available", each.reason.empty()},
                    {"summary", each.summary},
                    {"reason", each.reason}});
  }
  return list;
}

std::vector<Availability> transports() {
  std::vector<Availability> states;
  for (const TransportKind* kind : found_transports().kinds) {
    const Status status = kind->available(process_config().settings());
    states.push_back({.name = std::string(kind->name),
                      .summary = std::string(kind->summary),
                      .reason = status.ok() ? "" : status.to_string()});
  }
  const Availability absent[] = {
      {.name = "tcp", .reason = "this Hocket was built with -Dtcp=disabled"},
      {.name = "verbs",
       .reason = "this Hocket was built without the headers of libibverbs (Debian: "
                 "libibverbs-dev), or with -Dverbs=disabled"}};
  for (const Availability& each : absent) {
    if (std::ranges::find(states, each.name, &Availability::name) == states.end()) {
      states.push_back(each);
    }
  }
  return states;
}

std::vector<Availability> devices() { return {device_state(), nccl_state()}; }

std::vector<net::Interface> interfaces() {
  auto listed = net::list_interfaces();
  return listed.ok() ? std::move(*listed) : std::vector<net::Interface>();
}

/// "up, 10000 Mb/s"
std::string summary_of(const net::Interface& interface) {
  std::string text = interface.is_up ? "up" : "down";
  if (interface.is_loopback) text += ", loopback";
  if (interface.is_link_local) text += ", link-local";
  if (interface.speed_mbps > 0) text += fmt::format(", {} Mb/s", interface.speed_mbps);
  return text;
}

/// Who started us: for each thing that the launcher says, its name and its text.
std::vector<std::vector<std::string>> launcher_rows() {
  const auto found = world::detect_launcher(process_environment());
  if (!found.ok()) {
    const bool is_none = found.status().code() == StatusCode::not_found;
    return {{"name", is_none ? "none" : fmt::format("none: {}", found.status().what())}};
  }
  const world::Launch& launch = found->launch;
  std::vector<std::vector<std::string>> rows = {{"name", std::string(launch.launcher)}};
  if (launch.rank >= 0) rows.push_back({"rank", fmt::format("{} of {}", launch.rank, launch.size)});
  if (launch.master) rows.push_back({"store", launch.master->to_string()});
  for (const std::string& each : found->disagreements) rows.push_back({"but", each});
  return rows;
}

std::vector<std::string_view> simd_available() {
  const auto sets = reduce::instruction_sets();
  std::vector<std::string_view> names(sets.size());
  std::ranges::transform(sets, names.begin(), &reduce::InstructionSet::name);
  return names;
}

std::string_view simd_wanted() {
  return variables::simd_levels[process_config().get(variables::simd).index];
}

std::string_view simd_used() {
  return reduce::widest_within(simd_wanted(), reduce::instruction_sets()).name;
}

std::string describe_cpus(const Machine& machine) {
  if (machine.cpus_usable == machine.cpus) return fmt::format("{}", machine.cpus);
  return fmt::format("{}, of which this process may use {}", machine.cpus, machine.cpus_usable);
}

void print_overview() {
  const Build build;
  const Machine here = machine();
  Page page(10);
  page.heading(fmt::format("Hocket {}", build.version));
  page.table({{"C ABI", fmt::format("{}", build.abi_version)},
              {"compiler", std::string(build.compiler)},
              {"build type", std::string(build.type)},
              {"sanitizer", std::string(build.sanitizer)}});
  page.heading("Machine");
  page.table({{"processor", fmt::format("{} ({})", here.processor, here.architecture)},
              {"CPUs", describe_cpus(here)},
              {"system", here.system}});
  page.heading("Vector instructions");
  page.table({{"available", joined(simd_available(), ", ")},
              {"used", fmt::format("{} (HOCKET_SIMD={})", simd_used(), simd_wanted())}});
  page.heading("Transports");
  std::vector<std::vector<std::string>> rows;
  for (const Availability& each : transports()) rows.push_back(row_of(each));
  for (const std::string& each : found_transports().complaints) rows.push_back({"but", each});
  page.table(rows);
  page.heading("Devices");
  rows.clear();
  for (const Availability& each : devices()) rows.push_back(row_of(each));
  page.table(rows);
  page.heading("Interfaces");
  rows.clear();
  for (const net::Interface& each : interfaces()) {
    rows.push_back(
        {each.name, fmt::format("{}/{}", each.address, each.prefix_bits), summary_of(each)});
  }
  page.table(rows);
  page.heading("Launcher");
  page.table(launcher_rows());
}

std::string help_of(const VariableInfo& variable) {
  return fmt::format("{}{}", variable.help,
                     variable.is_of_process ? "; holds for the whole process" : "");
}

void print_environment() {
  Page page;
  for (const VariableInfo* variable : variables::all()) {
    std::string type(name(variable->kind));
    if (!variable->choices.empty()) type += fmt::format(": {}", joined(variable->choices, ", "));
    std::vector<std::vector<std::string>> rows = {
        {"type", type},
        {"default", std::string(variable->fallback.empty() ? "none" : variable->fallback)}};
    if (const auto value = process_config().shown(*variable)) {
      rows.push_back({"set to", std::string(*value)});
    }
    page.heading(variable->name);
    page.table({{help_of(*variable)}});
    page.table(rows);
  }
}

Json environment_json() {
  Json list = Json::array();
  for (const VariableInfo* variable : variables::all()) {
    const auto value = process_config().shown(*variable);
    list.push_back({{"name", variable->name},
                    {"type", name(variable->kind)},
                    {"default", variable->fallback},
                    {"choices", variable->choices},
                    {"value", value ? Json(*value) : Json()},
                    {"help", help_of(*variable)}});
  }
  return list;
}

Json interfaces_json() {
  Json list = Json::array();
  for (const net::Interface& each : interfaces()) {
    list.push_back({{"name", each.name},
                    {"address", each.address},
                    {"prefix_bits", each.prefix_bits},
                    {"up", each.is_up},
                    {"loopback", each.is_loopback},
                    {"speed_mbps", each.speed_mbps > 0 ? Json(each.speed_mbps) : Json()}});
  }
  return list;
}

Json launcher_json() {
  Json object = Json::object();
  for (const auto& row : launcher_rows()) object[row.front()] = row.back();
  return object;
}

void print_json() {
  const Build build;
  const Machine here = machine();
  const Json document = {
      {"version", build.version},
      {"c_abi", build.abi_version},
      {"build",
       {{"compiler", build.compiler}, {"type", build.type}, {"sanitizer", build.sanitizer}}},
      {"machine",
       {{"processor", here.processor},
        {"architecture", here.architecture},
        {"system", here.system},
        {"cpus", here.cpus},
        {"cpus_usable", here.cpus_usable}}},
      {"simd", {{"available", simd_available()}, {"used", simd_used()}, {"wanted", simd_wanted()}}},
      {"transports", list_of(transports())},
      {"transport_complaints", found_transports().complaints},
      {"devices", list_of(devices())},
      {"interfaces", interfaces_json()},
      {"launcher", launcher_json()},
      {"environment", environment_json()},
      {"complaints", process_config().complaints()},
  };
  // What the environment holds need not be UTF-8.
  fmt::print("{}\n", document.dump(2));
}

}  // namespace

void add_info_command(program::Parser& program) {
  struct Options {
    bool env = false;
    bool json = false;
  };
  const auto options = std::make_shared<Options>();
  program::Parser& parser = program.add_command("info", "Show this build, machine and settings");
  parser.add_flag("--env", &options->env, "List the HOCKET_* environment variables instead");
  parser.add_flag("--json", &options->json, "Write everything as one JSON document");
  parser.on_run([options] {
    if (options->json) {
      print_json();
    } else if (options->env) {
      print_environment();
    } else {
      print_overview();
    }
    return program::exit_success;
  });
}

}  // namespace hocket::cli
