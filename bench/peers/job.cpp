// How long a job takes as a whole, and how much memory its largest process.
//
// usage: job COMMAND…
//
// A process inherits the peak of the one that forks it, so that this has to be a small one.
#include <chrono>
#include <cstdio>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 2) return 2;
  const auto begin = std::chrono::steady_clock::now();
  const pid_t job = ::fork();
  if (job == 0) {
    ::dup2(::open("/dev/null", O_WRONLY), STDOUT_FILENO);
    ::execvp(words[1], words + 1);
    std::perror(words[1]);
    ::_exit(127);
  }
  int status = 0;
  rusage usage = {};
  if (job < 0 || ::wait4(job, &status, 0, &usage) != job) return 1;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return 1;
  std::printf(R"({"bytes": 0, "time_s": %g, "p50_s": %g, "p99_s": %g, "peak_bytes": %ld})"
              "\n",
              seconds, seconds, seconds, usage.ru_maxrss * 1024);
}
