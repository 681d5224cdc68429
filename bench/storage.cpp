#include "storage.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace hocket::bench {
namespace {

void require_done(Status status) {
  if (!status.ok()) throw_error(std::move(status));
}

device::Runtime found_runtime() {
  const Result<device::Runtime>& found = device::process_runtime();
  if (found.ok()) return *found;
  throw_error(Status(StatusCode::unsupported, "no device memory here").caused_by(found.status()));
}

}  // namespace

DeviceStream::DeviceStream()
    : runtime_(found_runtime()),
      stream_(device::make_stream(runtime_).value()),
      end_(make_mark()) {}

void DeviceStream::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  require_done(runtime_.check(runtime_->copy(to, from, bytes, stream_.get()), "copying"));
}

void DeviceStream::wait() const {
  mark(end_);
  while (!device::is_over(runtime_, end_).value()) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void DeviceStream::mark(const device::Event& event) const {
  require_done(runtime_.check(runtime_->record(event.get(), stream_.get()), "recording an event"));
}

device::Event DeviceStream::make_mark() const { return device::make_event(runtime_, true).value(); }

Duration DeviceStream::between(const device::Event& begin, const device::Event& end) const {
  float milliseconds = 0;
  require_done(runtime_.check(runtime_->elapsed(begin.get(), end.get(), &milliseconds),
                              "the time between two events"));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<float, std::milli>(milliseconds));
}

Storage::Storage(const DeviceStream* on, MemoryKind kind, std::size_t bytes)
    : device_(on), copy_(bytes) {
  if (is_host() || bytes == 0) return;
  auto memory = device::Memory::make(on->runtime(), kind, bytes);
  memory_ = std::move(memory).value();
}

void Storage::write_back() {
  if (is_host()) return;
  device_->copy(memory_.data(), copy_.data(), copy_.size());
  device_->wait();
}

void Storage::read() {
  if (is_host()) return;
  device_->copy(copy_.data(), memory_.data(), copy_.size());
  device_->wait();
}

}  // namespace hocket::bench
