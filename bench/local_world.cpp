#include "local_world.hpp"

#include <cerrno>
#include <filesystem>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "hocket/status.hpp"

#include "base/config.hpp"
#include "base/environment.hpp"
#include "world/launcher.hpp"

namespace hocket::bench {

std::string beside_this_program(const std::string& name) {
  const std::filesystem::path here = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  for (const auto& folder : {here, here.parent_path() / "tools"}) {  // installed; a build folder
    if (std::filesystem::exists(folder / name)) return folder / name;
  }
  return {};
}

bool is_launched() {
  const Environment environment = process_environment();
  if (environment.has(variables::rendezvous.name)) return true;
  const auto launcher = world::detect_launcher(environment);
  return launcher.ok() || launcher.status().code() != StatusCode::not_found;
}

void launch_ranks(int ranks, std::span<const std::string> words) {
  const std::string launcher = beside_this_program("hocket");
  if (launcher.empty()) {
    throw_error(Status(StatusCode::not_found, "the program hocket is not beside this one")
                    .with_hint("start the ranks yourself: hocket run -n 4 -- hocket-bench …"));
  }
  std::vector<std::string> command = {launcher,
                                      "run",
                                      "-n",
                                      std::to_string(ranks),
                                      "--no-tag-output",
                                      "--",
                                      std::filesystem::read_symlink("/proc/self/exe")};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  ::execv(launcher.c_str(), arguments.data());
  throw_error(Status(StatusCode::system_error, fmt::format("{} can't be started", launcher))
                  .with_system_error(errno));
}

}  // namespace hocket::bench
