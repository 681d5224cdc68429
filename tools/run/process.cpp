#include "run/process.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

namespace hocket::run {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> to;
  for (const std::string& text : texts) to.push_back(const_cast<char*>(text.c_str()));
  to.push_back(nullptr);
  return to;
}

/// 0 when the file can be executed.
int try_program(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return errno;
  if (S_ISDIR(found.st_mode)) return EISDIR;
  return access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// What the child needs, made before the fork: after it there is only what is safe in a signal
/// handler.
struct Ready {
  const char* path;
  char** words;
  char** environment;
  int input;
  int output;
  int error;
  int failure;
  pid_t parent;
  const Dispositions* dispositions;
};

[[noreturn]] void become(const Ready& ready) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (getppid() != ready.parent) _exit(exit_not_executable);  // it died before that
  const int input = ready.input >= 0 ? ready.input : open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (input == STDIN_FILENO) {
    fcntl(input, F_SETFD, 0);
  } else {
    dup2(input, STDIN_FILENO);
  }
  dup2(ready.output, STDOUT_FILENO);
  dup2(ready.error, STDERR_FILENO);
  restore(*ready.dispositions);
  execve(ready.path, ready.words, ready.environment);
  const int why = errno;
  [[maybe_unused]] const ssize_t told = ::write(ready.failure, &why, sizeof why);
  _exit(why == ENOENT ? exit_not_found : exit_not_executable);
}

/// The errno that the child told; 0 when the pipe was closed as it became the program.
int execute_error(const Fd& failure) noexcept {
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(failure.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof why) ? why : 0;
}

}  // namespace

PipeEnds make_pipe() {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw_error(Status(StatusCode::system_error, "no pipe can be made")
                    .with_system_error(errno)
                    .with_hint("`ulimit -n` limits the open files; each rank needs two"));
  }
  return {Fd(ends[0]), Fd(ends[1])};
}

void open_standard_streams() noexcept {
  int opened = 0;
  do {
    opened = open("/dev/null", O_RDWR);  // takes the lowest that is free
  } while (opened >= 0 && opened <= STDERR_FILENO);
  if (opened >= 0) close(opened);
}

std::string error_text(int error_number) { return strerrordesc_np(error_number); }

int exit_status(int wait_status) noexcept {
  return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

std::string describe_end(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return fmt::format("exit status {}", WEXITSTATUS(wait_status));
  const int signal = WTERMSIG(wait_status);
  const char* const meaning = sigdescr_np(signal);
  return fmt::format("killed by {}{}{}", signal_name(signal),
                     meaning != nullptr ? fmt::format(" ({})", meaning) : "",
                     WCOREDUMP(wait_status) ? ", core dumped" : "");
}

int CannotStart::status() const noexcept {
  return error_number == ENOENT || error_number == ENOTDIR ? exit_not_found : exit_not_executable;
}

CannotStart cannot_start(std::string_view program, int error_number) {
  std::string_view hint;
  if (error_number == ENOENT) hint = "\nhint: is it in PATH, and its interpreter there?";
  if (error_number == EACCES) hint = "\nhint: `chmod +x` makes it executable";
  if (error_number == ENOEXEC) hint = "\nhint: a script begins with #! and its interpreter";
  return {error_number,
          fmt::format("{} can't be started: {}{}", program, error_text(error_number), hint)};
}

FoundProgram find_program(const std::string& name, std::string_view search_path) {
  if (name.find('/') != std::string::npos || name.empty()) {
    const int why = name.empty() ? ENOENT : try_program(name);
    if (why != 0) return {{}, cannot_start(name, why)};
    return {name, {}};
  }
  if (search_path.empty()) search_path = "/usr/local/bin:/usr/bin:/bin";
  int why = ENOENT;
  for (std::size_t begin = 0; begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string_view folder = search_path.substr(begin, end - begin);
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    const int error_number = try_program(path);
    if (error_number == 0) return {std::move(path), {}};
    if (error_number == EACCES) why = EACCES;
    begin = end + 1;
  }
  return {{}, cannot_start(name, why)};
}

Result<Process> start_process(const ProcessOptions& options) {
  PipeEnds output = make_pipe();
  PipeEnds error = make_pipe();
  PipeEnds failure = make_pipe();
  std::vector<char*> words = pointers(options.words);
  std::vector<char*> environment = pointers(options.environment);
  const Ready ready = {.path = options.path.c_str(),
                       .words = words.data(),
                       .environment = environment.data(),
                       .input = options.input,
                       .output = output.writer.get(),
                       .error = options.error >= 0 ? options.error : error.writer.get(),
                       .failure = failure.writer.get(),
                       .parent = getpid(),
                       .dispositions = &options.dispositions};
  const pid_t pid = fork();
  if (pid == 0) become(ready);
  if (pid < 0) {
    return Status(StatusCode::system_error, fmt::format("no process for {}", options.path))
        .with_system_error(errno)
        .with_hint("`ulimit -u` limits the processes");
  }
  // Whoever of the two comes first: nobody may signal the group before it is there.
  setpgid(pid, pid);
  failure.writer.reset();
  if (const int why = execute_error(failure.reader); why != 0) {
    waitpid(pid, nullptr, 0);
    return Process{.failure = cannot_start(options.words.front(), why)};
  }
  for (const PipeEnds* each : {&output, &error}) {
    fcntl(each->reader.get(), F_SETFL, O_NONBLOCK);
  }
  return Process{.pid = pid, .output = std::move(output.reader), .error = std::move(error.reader)};
}

}  // namespace hocket::run
