#include "conformance/process.hpp"

#include <csignal>
#include <stdexcept>
#include <thread>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.hpp"

namespace hocket::testing {
namespace {

void check(bool is_fine, const char* what) {
  if (!is_fine) throw std::runtime_error(what);
}

int exit_status(int status) {
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// Short enough to fit into the pipe.
Fd pipe_with(const std::string& text) {
  int ends[2] = {};
  check(pipe2(ends, O_CLOEXEC) == 0, "pipe2");
  const Fd read_end(ends[0]);
  const Fd write_end(ends[1]);
  check(write(write_end.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()),
        "write to a pipe");
  return Fd(dup(read_end.get()));
}

}  // namespace

Process Process::of_this_program(const std::vector<std::string>& arguments,
                                 const std::string& input) {
  std::vector<std::string> words = {"worker"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  const Fd in = pipe_with(input);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in.get(), STDIN_FILENO);
  posix_spawn_file_actions_addclose(&actions, in.get());
  int id = -1;
  const int failure =
      posix_spawn(&id, "/proc/self/exe", &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  check(failure == 0, "posix_spawn");
  return Process(id);
}

Process::~Process() {
  if (id_ < 0) return;
  send(SIGKILL);
  waitpid(id_, nullptr, 0);
}

void Process::send(int signal) const { kill(id_, signal); }

std::optional<int> Process::wait(Duration timeout) {
  const Deadline deadline = Deadline::after(monotonic_clock(), timeout);
  for (;;) {
    int status = 0;
    if (waitpid(id_, &status, WNOHANG) == id_) {
      id_ = -1;
      return exit_status(status);
    }
    if (deadline.passed(monotonic_clock().now())) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace hocket::testing
