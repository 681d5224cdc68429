// The ranks of a peer that starts them itself, as processes of this one.
#pragma once

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "contest.hpp"

namespace peers {

/// RANKS: the first word of the program's; 0, and how to use it, where it is none.
inline int read_ranks(int count, char** words) {
  const int size = count > 1 ? std::atoi(words[1]) : 0;
  if (size < 1) std::fprintf(stderr, "usage: RANKS OPERATION SECONDS_PER_SIZE BYTES,BYTES...\n");
  return size < 1 ? 0 : size;
}

/// One rank's part, by the words behind RANKS; `join` makes its Contestant. Leaves without taking
/// anything down, behind a barrier: some would still use it.
template <class Join>
[[noreturn]] void be_rank(int rank, const Join& join, int count, char** words) {
  try {
    const std::unique_ptr<Contestant> who = join();
    const int status = contest(*who, count - 2, words + 2);
    if (status == 0) who->barrier();
    std::fflush(stdout);
    ::_exit(status);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
  }
  ::_exit(1);
}

/// Each in a process, which calls be(rank). 0 when all ended well; when one does not, all others
/// end with this process.
template <class Be>
[[nodiscard]] int start_ranks(int size, const Be& be) {
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = ::fork();
    if (child < 0) return 1;
    if (child > 0) continue;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    be(rank);
  }
  for (int status = 0; ::wait(&status) > 0;) {
    if (status != 0) return 1;
  }
  return 0;
}

}  // namespace peers
