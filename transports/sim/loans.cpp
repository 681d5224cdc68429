#include "transports/sim/loans.hpp"

#include <span>
#include <utility>

#include "transports/sim/memory.hpp"

namespace hocket::simulated {

std::byte* Loans::make(std::uint64_t bytes, std::uint32_t loans_max) {
  if (loans_.size() >= loans_max) return nullptr;
  auto memory = std::make_unique<std::byte[]>(bytes);
  std::byte* const lent = memory.get();
  loans_.emplace(lent, Loan{std::move(memory), bytes});
  return lent;
}

std::optional<std::uint64_t> Loans::give_back(const std::byte* lent, SeededRandom& random) {
  const auto found = loans_.find(lent);
  if (found == loans_.end()) return std::nullopt;
  const std::uint64_t bytes = found->second.bytes;
  poison({found->second.memory.get(), bytes}, random);
  returned_.push_back(std::move(found->second));
  if (returned_.size() > returned_max) returned_.pop_front();
  loans_.erase(found);
  return bytes;
}

}  // namespace hocket::simulated
