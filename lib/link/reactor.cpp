#include "link/reactor.hpp"

#include <cerrno>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>

#include <sys/eventfd.h>

#include <asio/posix/stream_descriptor.hpp>

#include "base/exception.hpp"
#include "base/log.hpp"
#include "base/signals.hpp"

namespace hocket::link {
namespace {

constexpr std::chrono::milliseconds retry_pause{10};  // while there is no memory

struct Slot {
  std::mutex mutex;
  std::weak_ptr<Reactor> reactor;
};

Slot& slot_of_process() {
  static ProcessWide<Slot> slots;
  return slots.get();
}

}  // namespace

Result<std::shared_ptr<Reactor>> Reactor::of_process() {
  return described([]() -> Result<std::shared_ptr<Reactor>> {
    Slot& slot = slot_of_process();
    const std::lock_guard lock(slot.mutex);
    auto reactor = slot.reactor.lock();
    if (reactor == nullptr) {
      reactor = std::make_shared<Reactor>();
      slot.reactor = reactor;
    }
    return reactor;
  });
}

Reactor::Reactor()
    : anchor_(Fd::open_unforked([] { return ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); })) {
  if (!anchor_) throw std::system_error(errno, std::generic_category(), "eventfd");
  asio::posix::stream_descriptor watched(io_, anchor_.get());
  files_ = std::make_unique<ReactorFiles>(anchor_.get());
  static_cast<void>(watched.release());
  const SignalsBlocked blocked;
  thread_ = std::thread([this] { run(); });
}

Reactor::~Reactor() {
  work_.reset();
  thread_.join();
}

void Reactor::run() noexcept {
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      log::line(log::Level::error, "control: {}", error.what());
      std::this_thread::sleep_for(retry_pause);
    }
  }
}

}  // namespace hocket::link
