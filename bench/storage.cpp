#include "storage.hpp"

#include <chrono>
#include <thread>
#include <utility>

namespace hocket::bench {
namespace {

void require(Status status) {
  if (!status.ok()) throw_error(std::move(status));
}

device::Runtime found_runtime() {
  const Result<device::Runtime>& found = device::process_runtime();
  if (found.ok()) return *found;
  throw_error(Status(StatusCode::unsupported, "no device memory here").caused_by(found.status()));
}

}  // namespace

Bench::Bench()
    : runtime_(found_runtime()),
      stream_(device::make_stream(runtime_).value()),
      end_(make_mark()) {}

void Bench::copy(void* to, const void* from, std::size_t bytes) const {
  if (bytes == 0) return;
  require(runtime_.check(runtime_->copy(to, from, bytes, stream_.get()), "copying"));
}

void Bench::wait() const {
  mark(end_);
  while (!device::is_over(runtime_, end_).value()) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void Bench::mark(const device::Event& event) const {
  require(runtime_.check(runtime_->record(event.get(), stream_.get()), "recording an event"));
}

device::Event Bench::make_mark() const { return device::make_event(runtime_, true).value(); }

Duration Bench::between(const device::Event& begin, const device::Event& end) const {
  float milliseconds = 0;
  require(runtime_.check(runtime_->elapsed(begin.get(), end.get(), &milliseconds),
                         "the time between two events"));
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<float, std::milli>(milliseconds));
}

Storage::Storage(const Bench* bench, MemoryKind kind, std::size_t bytes)
    : bench_(bench), copy_(bytes) {
  if (is_host() || bytes == 0) return;
  auto memory = device::Memory::make(bench->runtime(), kind, bytes);
  memory_ = std::move(memory).value();
}

void Storage::write_back() {
  if (is_host()) return;
  bench_->copy(memory_.data(), copy_.data(), copy_.size());
  bench_->wait();
}

void Storage::read() {
  if (is_host()) return;
  bench_->copy(copy_.data(), memory_.data(), copy_.size());
  bench_->wait();
}

}  // namespace hocket::bench
