#include "trace.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "base/text.hpp"
#include "failure.hpp"
#include "file.hpp"
#include "net/endpoint.hpp"
#include "page.hpp"
#include "program/json.hpp"
#include "trace/dump.hpp"
#include "trace/metrics.hpp"
#include "trace/show.hpp"
#include "trace/verdict.hpp"
#include "trace/web.hpp"

namespace hocket::cli {
namespace {

using namespace std::chrono_literals;
using trace::World;

struct TraceOptions {
  std::vector<std::string> paths;
  std::string perfetto;
  bool as_json = false;
  bool is_live = false;
  Duration interval = 1s;
  std::string folder = ".";
  std::string listen;
  std::string metrics_file;
};

constexpr std::string_view command = "hocket trace";

Status no_ranks() {
  return Status(StatusCode::not_found, "no rank of a Hocket program runs on this host")
      .with_hint(
          "another user's ranks need root; look at a job that is over with `hocket trace "
          "FOLDER`, if it ran with HOCKET_TRACE=FOLDER");
}

/// Reads the given files and folders, or without any the ranks that run on this host. Reports files
/// that cannot be read on stderr and skips them.
Result<std::vector<World>> read_worlds(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    auto inside = trace::record_files_in(path);
    if (!inside.ok()) return inside.status();
    files.insert(files.end(), inside->begin(), inside->end());
  }
  if (paths.empty()) files = trace::live_record_files();
  std::vector<trace::Dump> dumps;
  for (const std::string& file : files) {
    auto dump = trace::read_dump(file);
    if (dump.ok()) {
      dumps.push_back(std::move(*dump));
    } else {
      fmt::print(stderr, "{}: {}\n", command, dump.status().to_string());
    }
  }
  if (files.empty() && paths.empty()) return no_ranks();
  if (dumps.empty()) return Status(StatusCode::not_found, "no records were found");
  return trace::worlds_of(std::move(dumps));
}

void print(const std::vector<World>& worlds) {
  Page page;
  for (const World& world : worlds) {
    page.heading(trace::title(world));
    for (const std::string& sentence : trace::verdict(world)) page.table({{sentence}});
    fmt::print("\n");
    page.table(trace::table(world));
  }
}

void print_json(const std::vector<World>& worlds) {
  program::Json list = program::Json::array();
  for (const World& world : worlds) list.push_back(trace::to_json(world));
  fmt::print("{}\n", program::Json({{"worlds", std::move(list)}}).dump(2));
}

int show(const TraceOptions& options) {
  const bool clears = options.is_live && !options.as_json && ::isatty(STDOUT_FILENO) == 1;
  bool has_shown = false;
  for (;;) {
    const auto worlds = read_worlds(options.paths);
    if (!worlds.ok() && options.is_live && has_shown) {
      fmt::print("The job is over.\n");
      return program::exit_success;
    }
    if (!worlds.ok()) return fail(command, worlds.status());
    has_shown = true;
    if (!options.perfetto.empty()) {
      const Status status = write_file(options.perfetto, trace::perfetto(*worlds).dump());
      if (!status.ok()) return fail(command, status);
    }
    if (clears) fmt::print("\033[H\033[2J");
    options.as_json ? print_json(*worlds) : print(*worlds);
    std::fflush(stdout);
    if (!options.is_live) return program::exit_success;
    std::this_thread::sleep_for(options.interval);
  }
}

int dump(const TraceOptions& options) {
  const auto files = trace::live_record_files();
  std::error_code error;
  std::filesystem::create_directories(options.folder, error);
  std::size_t count = 0;
  for (const std::string& file : files) {
    const auto found = trace::read_dump(file);
    if (!found.ok()) continue;  // it has ended meanwhile, or is of another version
    const std::string path = fmt::format("{}/{:016x}.rank-{}.{}", options.folder,
                                         found->header.world, found->rank(), record::file_mark);
    const Status status = trace::copy_dump(file, path);
    if (status.ok()) {
      fmt::print("{}\n", path);
      ++count;
    } else {
      fmt::print(stderr, "hocket trace dump: {}\n", status.to_string());
    }
  }
  return count > 0 ? program::exit_success : fail("hocket trace dump", no_ranks());
}

std::string metrics_page() {
  const auto worlds = read_worlds({});
  return trace::metrics(worlds.ok() ? *worlds : std::vector<World>());
}

int serve_metrics(const TraceOptions& options) {
  const auto endpoint = net::parse_endpoint(options.listen);
  if (!endpoint.ok()) return fail("hocket trace metrics", endpoint.status());
  const auto say = [](const net::Endpoint& at) {
    fmt::print("serving http://{}/metrics\n", at.to_string());
    std::fflush(stdout);
  };
  return fail("hocket trace metrics", trace::serve(*endpoint, metrics_page, say));
}

/// The file is replaced in one step, so that nobody reads half of it.
int write_metrics(const TraceOptions& options) {
  const std::string unfinished = options.metrics_file + ".new";
  for (;;) {
    const Status status = write_file(unfinished, metrics_page());
    if (!status.ok()) return fail("hocket trace metrics", status);
    std::error_code error;
    std::filesystem::rename(unfinished, options.metrics_file, error);
    if (error) {
      return fail("hocket trace metrics",
                  Status(StatusCode::system_error,
                         fmt::format("can't write {}", quote(options.metrics_file)))
                      .with_system_error(error.value()));
    }
    std::this_thread::sleep_for(options.interval);
  }
}

int give_metrics(const TraceOptions& options) {
  if (!options.listen.empty()) return serve_metrics(options);
  if (!options.metrics_file.empty()) return write_metrics(options);
  fmt::print("{}", metrics_page());
  return program::exit_success;
}

}  // namespace

void add_trace_command(program::Parser& program) {
  const auto options = std::make_shared<TraceOptions>();
  program::Parser& parser = program.add_command(
      "trace", "Show what each rank is doing and which rank the others wait for");
  parser.set_footer(
      "Every rank records its last 4,096 operations. Without PATH, this shows the ranks that run "
      "on\n"
      "this host, including those that hang or are stopped. To see ranks that have ended, start "
      "the\n"
      "job with HOCKET_TRACE=FOLDER and run `hocket trace FOLDER`. For several hosts, run\n"
      "`hocket trace dump -o FOLDER` on each, collect the files in one folder, and pass that "
      "folder.\n"
      "`hocket plan explain` shows the steps of an algorithm.");
  parser.add_option("PATH", &options->paths,
                    "Record files, or folders that contain them (default: the ranks on this host)");
  parser.add_option("--perfetto", &options->perfetto,
                    "Write a timeline for https://ui.perfetto.dev to this file");
  parser.add_flag("--json", &options->as_json, "Print JSON");
  parser.add_flag("--live", &options->is_live, "Repeat until interrupted or the job is over");
  parser.add_option("--interval", &options->interval, "Time between two updates with --live")
      .with_default();
  parser.on_run([options] { return show(*options); });
  program::Parser& dumping =
      parser.add_command("dump", "Copy the records of the ranks that run on this host to files");
  dumping.set_footer("`hocket trace FOLDER` reads the files.");
  dumping
      .add_option("-o,--output", &options->folder,
                  "Folder for the files, which is created if needed")
      .with_default();
  dumping.on_run([options] { return dump(*options); });
  program::Parser& counting = parser.add_command(
      "metrics", "Print counters of the ranks on this host in the Prometheus text format");
  counting.set_footer("The counters begin when a rank joins, and end with its process.");
  counting.add_option("--listen", &options->listen, "Serve them over HTTP at this HOST:PORT");
  counting.add_option("--write", &options->metrics_file, "Write them to this file, repeatedly");
  counting.add_option("--interval", &options->interval, "Time between two writes").with_default();
  counting.on_run([options] { return give_metrics(*options); });
}

}  // namespace hocket::cli
