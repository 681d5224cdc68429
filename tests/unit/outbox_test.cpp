#include "store/outbox.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.hpp"
#include "wire/frame.hpp"

using hocket::store::Outbox;
using hocket::store::Reply;
using hocket::store::Value;

TEST_CASE("values are shared by the replies that wait to be sent") {
  const auto value = std::make_shared<const std::string>(4000, 'v');
  const Reply reply = {.values = std::vector<Value>(500, value)};
  std::string expected;
  Outbox outbox;
  for (std::uint64_t id = 0; id < 3; ++id) {
    const std::size_t start = hocket::wire::open_frame(expected);
    hocket::store::encode_head(reply, expected);
    for (const Value& each : reply.values) {
      hocket::store::encode_value_head(each, expected);
      expected += *each;
    }
    hocket::wire::close_frame(expected, start, id);
    outbox.push(id, reply);
  }
  REQUIRE(outbox.bytes() == expected.size());
  std::string sent;
  while (outbox.bytes() > 0) {
    // What is still to be sent is no copy, but for a little.
    const auto references = static_cast<std::size_t>(value.use_count());
    REQUIRE((references + 40) * value->size() > outbox.bytes());
    std::array<std::string_view, 3> pieces;
    REQUIRE(outbox.front(pieces) > 0);
    const std::size_t bytes = std::min<std::size_t>(pieces.front().size(), 10'000);
    sent.append(pieces.front().substr(0, bytes));
    outbox.pop(bytes);
  }
  REQUIRE(sent == expected);
}
