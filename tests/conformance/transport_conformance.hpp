// What every transport must do, written once. To plug one in: transports/NAME/conformance.cpp,
// which defines transport_subjects(), and the names of its subjects in
// tests/conformance/meson.build.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "hocket/transport.hpp"

#include "support/require.hpp"

namespace hocket::testing {

/// What the ranks of one test world have in common; outlives their transports.
class TransportNet {
 public:
  TransportNet() = default;
  TransportNet(const TransportNet&) = delete;
  TransportNet& operator=(const TransportNet&) = delete;
  virtual ~TransportNet() = default;

  /// The transport of a rank; rank, size, epoch and connect_timeout are the test's.
  [[nodiscard]] virtual std::unique_ptr<Transport> make(TransportOptions options) = 0;

  /// Called when no rank has anything to do: time that is not the machine's own goes on.
  virtual void pass_time() {}
};

/// One way to have a transport, each a test of its own.
struct TransportSubject {
  const char* name = "";
  std::unique_ptr<TransportNet> (*make_net)() = nullptr;  // null where it can't be had
  /// Ranks may be in threads and processes of their own, and sleep.
  bool crosses_processes = true;
  /// Small messages go before anybody asks for them.
  bool sends_ahead = true;
  /// Why a channel is closed is told even when the closer has sent half a message.
  bool tells_reason_in_mid_message = true;
  /// has_moved() tells of parts of messages.
  bool tells_of_parts = false;
  /// A rank that can't be reached may have this address; empty when there is no such thing.
  std::string unreachable_address = {};
};

std::span<const TransportSubject> transport_subjects();

}  // namespace hocket::testing

#define TRANSPORT_TEST_AS(function, title)                         \
  static void function(const TransportSubject& subject);           \
  TEST_CASE(title) {                                               \
    for (const TransportSubject& subject : transport_subjects()) { \
      DYNAMIC_SECTION(subject.name) {                              \
        if (subject.make_net != nullptr) function(subject);        \
      }                                                            \
    }                                                              \
  }                                                                \
  static void function(const TransportSubject& subject)
#define TRANSPORT_TEST_NUMBERED(number, title) TRANSPORT_TEST_AS(transport_test_##number, title)
#define TRANSPORT_TEST_EXPANDED(number, title) TRANSPORT_TEST_NUMBERED(number, title)

/// TRANSPORT_TEST("title") { … subject … }: one test case, with a section for each subject. Inside
/// of hocket::testing.
#define TRANSPORT_TEST(title) TRANSPORT_TEST_EXPANDED(__COUNTER__, title)
