// Calls operations, until one rank does what it should not: trace_test.py looks whether `hocket
// trace` finds it. Usage: traced FAULT VICTIM CALLS
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>

#include "hocket/hocket.hpp"

namespace {

using hocket::Collective;
using hocket::Communicator;
using hocket::Message;

constexpr std::size_t elements = 256;

struct Buffers {
  std::vector<float> one = std::vector<float>(elements, 1.0F);
  std::vector<float> all;
};

/// Every rank calls the same for the same number.
void call(Communicator& world, Buffers& buffers, int number, hocket::ReduceOp op) {
  switch (number % 5) {
    case 0:
      return world.all_reduce(buffers.one, op);
    case 1:
      return world.all_gather(buffers.one, buffers.all);
    case 2:
      return world.all_reduce(buffers.one, op);
    case 3:
      return world.barrier();
    default:
      return world.all_reduce(buffers.one, op);
  }
}

/// In a circle. `sends` is false on the rank that forgets to.
void pass_on(Communicator& world, Buffers& buffers, bool sends) {
  const int next = (world.rank() + 1) % world.size();
  const int previous = (world.rank() + world.size() - 1) % world.size();
  hocket::Work sent;
  if (sends) sent = world.start(Message::send(buffers.one, next, 7));
  world.run(Message::recv(buffers.all, previous, 7));
  if (sends) sent.wait();
}

/// Before the victim's last call.
void do_harm(Communicator& world, Buffers& buffers, std::string_view fault, int number) {
  fmt::print("victim before call {}\n", number + 1);
  std::fflush(stdout);
  if (fault == "kill") std::raise(SIGKILL);
  if (fault == "stop") std::raise(SIGSTOP);
  if (fault == "late") ::sleep(60);
  if (fault == "other") call(world, buffers, 0, hocket::ReduceOp::max);
}

}  // namespace

int main(int /*count*/, char** words) {
  const std::string_view fault = words[1];
  const int calls = std::atoi(words[3]);
  Communicator world = hocket::join();
  const bool is_victim = world.rank() == std::atoi(words[2]);
  Buffers buffers;
  buffers.all.resize(elements * static_cast<std::size_t>(world.size()));
  try {
    for (int number = 0; number < calls; ++number) {
      call(world, buffers, number, hocket::ReduceOp::sum);
    }
    if (fault == "silent") pass_on(world, buffers, !is_victim);
    if (is_victim && fault == "leave") return 0;
    if (is_victim) do_harm(world, buffers, fault, calls);
    call(world, buffers, fault == "other" ? 0 : calls, hocket::ReduceOp::sum);
    world.barrier();
  } catch (const std::exception& error) {
    fmt::print("{}\n", error.what());
    return 1;
  }
}
