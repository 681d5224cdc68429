#include "transports/verbs/slots.hpp"

#include <cerrno>
#include <utility>

#include <sys/mman.h>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/text.hpp"
#include "transports/verbs/library.hpp"

namespace hocket::verbs {
namespace {

Status no_memory(std::size_t bytes, int error) {
  return Status(StatusCode::limit_exceeded,
                fmt::format("the RDMA adapter can't be given {} of memory", format_size(bytes)))
      .with_system_error(error)
      .with_hint("raise the limit of locked memory (ulimit -l unlimited) where the job is started");
}

}  // namespace

Slots::Slots(const SlotOptions& options, std::vector<ibv_pd*> domains)
    : options_(options), domains_(std::move(domains)) {
  free_.reserve(options.most);
}

Slots::~Slots() {
  for (const Chunk& chunk : chunks_) release(chunk);
}

void Slots::release(const Chunk& chunk) const noexcept {
  for (ibv_mr* const region : chunk.regions) {
    if (region != nullptr) api().ibv_dereg_mr(region);
  }
  ::munmap(chunk.memory, chunk_bytes());
}

/// The pages are there at once: registering pages that do not exist yet takes far longer.
Status Slots::grow() {
  if (count() + options_.at_once > options_.most) {
    return Status(StatusCode::limit_exceeded, "all slots are in use");
  }
  void* const memory = ::mmap(nullptr, chunk_bytes(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return no_memory(chunk_bytes(), errno);
  Chunk chunk = {.memory = static_cast<std::byte*>(memory)};
  const int access =
      IBV_ACCESS_LOCAL_WRITE | (options_.is_written_remotely ? IBV_ACCESS_REMOTE_WRITE : 0);
  for (ibv_pd* const domain : domains_) {
    ibv_mr* const region = (api().ibv_reg_mr)(domain, memory, chunk_bytes(), access);
    const int error = errno;
    chunk.regions.push_back(region);
    if (region != nullptr) continue;
    release(chunk);
    return no_memory(chunk_bytes(), error);
  }
  const auto first = static_cast<Index>(count());
  for (Index i = options_.at_once; i > 0; --i) free_.push_back(first + i - 1);
  chunks_.push_back(std::move(chunk));
  return {};
}

std::optional<Slots::Index> Slots::take() noexcept {
  if (free_.empty()) {
    if (is_full_) return std::nullopt;
    if (Status status = grow(); !status.ok()) {
      is_full_ = true;
      log::line(log::Level::info, "no more than {} slots of {}: {}", count(),
                format_size(slot_bytes()), status.what());
      return std::nullopt;
    }
  }
  const Index slot = free_.back();
  free_.pop_back();
  return slot;
}

std::byte* Slots::memory(Index slot) const noexcept {
  return chunks_[slot / options_.at_once].memory + slot % options_.at_once * options_.slot_bytes;
}

std::uint32_t Slots::local_key(Index slot, std::size_t rail) const noexcept {
  return chunks_[slot / options_.at_once].regions[rail]->lkey;
}

std::uint32_t Slots::remote_key(Index slot, std::size_t rail) const noexcept {
  return chunks_[slot / options_.at_once].regions[rail]->rkey;
}

std::optional<Slots::Index> Slots::find(const std::byte* address) const noexcept {
  for (std::size_t i = 0; i < chunks_.size(); ++i) {
    const std::byte* const begin = chunks_[i].memory;
    if (address < begin || address >= begin + chunk_bytes()) continue;
    return static_cast<Index>(i * options_.at_once) +
           static_cast<Index>(static_cast<std::size_t>(address - begin) / options_.slot_bytes);
  }
  return std::nullopt;
}

}  // namespace hocket::verbs
