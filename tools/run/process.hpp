// Programs: to find, to start and to say how they ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "hocket/status.hpp"

#include "base/fd.hpp"
#include "run/signals.hpp"

namespace hocket::run {

// What a shell says of a program that can't be started.
inline constexpr int exit_not_executable = 126;
inline constexpr int exit_not_found = 127;

/// Its ends; no other program gets them.
struct PipeEnds {
  Fd reader;
  Fd writer;
};
[[nodiscard]] PipeEnds make_pipe();

/// Opens /dev/null in place of stdin, stdout or stderr where one is closed, lest another file
/// becomes it.
void open_standard_streams() noexcept;

/// "No such file or directory"
[[nodiscard]] std::string error_text(int error_number);

/// As a shell shows it: the program's own, or 128 + the signal that ended it.
[[nodiscard]] int exit_status(int wait_status) noexcept;

/// "exit status 3", "killed by SIGSEGV (Segmentation fault)"
[[nodiscard]] std::string describe_end(int wait_status);

/// Why a program can't be started, with errno and, for a shell, exit status.
struct CannotStart {
  int error_number = 0;
  std::string text;  // names the program

  [[nodiscard]] int status() const noexcept;
};
[[nodiscard]] CannotStart cannot_start(std::string_view program, int error_number);

/// The path of the program, searched as a shell does (without a search path in the usual folders),
/// or why there is none that can be started.
struct FoundProgram {
  std::string path;
  std::optional<CannotStart> failure;
};
[[nodiscard]] FoundProgram find_program(const std::string& name, std::string_view search_path);

struct ProcessOptions {
  std::string path;
  std::vector<std::string> words;        // argv
  std::vector<std::string> environment;  // "NAME=value"
  int input = -1;                        // what becomes its stdin; -1 for /dev/null
  int error = -1;                        // what becomes its stderr; -1 for a new pipe
  Dispositions dispositions = {};
};

struct Process {
  pid_t pid = -1;  // its process group as well
  Fd output = {};
  Fd error = {};
  std::optional<CannotStart> failure = {};  // to execute the program: then there is no process
};

/// Starts a program in a process group of its own, and waits until it is executed. It is killed
/// when the thread that called this dies.
[[nodiscard]] Result<Process> start_process(const ProcessOptions& options);

}  // namespace hocket::run
