#include "health/report.hpp"

#include <cstddef>

#include "base/text.hpp"

namespace hocket::health {
namespace {

/// Of each text: longer ones are cut.
constexpr std::size_t text_bytes_max = 2048;

std::uint32_t rank_or_nobody(int rank) noexcept {
  return rank < 0 ? nobody : static_cast<std::uint32_t>(rank);
}

}  // namespace

Notice notice_of(const Report& report, std::uint64_t communicator, std::uint32_t origin,
                 std::int64_t time) {
  return {.finding = Finding::failure,
          .origin = origin,
          .culprit = rank_or_nobody(report.why.peer()),
          .communicator = communicator,
          .code = report.why.code(),
          .system_error = report.why.system_error(),
          .time = time,
          .what = cut(report.why.what(), text_bytes_max),
          .hint = cut(report.why.hint(), text_bytes_max),
          .operation = cut(report.operation, text_bytes_max),
          .step = report.why.step(),
          .awaited = rank_or_nobody(report.awaited),
          .is_second_hand = report.is_second_hand};
}

}  // namespace hocket::health
