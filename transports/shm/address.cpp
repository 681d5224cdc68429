#include "transports/shm/address.hpp"

#include <cerrno>
#include <charconv>

#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/machine.hpp"
#include "base/text.hpp"

namespace hocket::shm {
namespace {

/// Of a namespace of this process; 0 if the kernel has none of that kind.
std::uint64_t namespace_of(const char* kind) {
  struct stat status = {};
  return ::stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &status) == 0 ? status.st_ino : 0;
}

template <class T>
bool read_number(std::string_view& text, T& number, int base = 10) {
  const std::string_view word = take_until(text, " ");
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number, base);
  return error == std::errc() && end == word.data() + word.size();
}

/// The rights of this process. The kernel shows the descriptors of a process only to those with at
/// least its rights.
std::string capabilities() { return system_line("/proc/self/status", "CapPrm:"); }

}  // namespace

/// With the network's namespace, because whoever gives ranks networks of their own wants them to be
/// hosts of their own; and with the host's name, because machines that were copied while they ran
/// may have all the rest in common.
Address Address::own() {
  utsname names = {};
  ::uname(&names);
  return {.domain = fmt::format("{}/{}/{}/{}/{}/{}/{}/{}", own_machine(), names.nodename,
                                namespace_of("pid"), namespace_of("user"), namespace_of("net"),
                                ::geteuid(), ::getegid(), capabilities()),
          .pid = ::getpid()};
}

Result<Address> Address::parse(std::string_view text) {
  Address address;
  address.domain = std::string(take_until(text, " "));
  if (!address.domain.empty() && read_number(text, address.pid) &&
      read_number(text, address.board) && read_number(text, address.bell) &&
      read_number(text, address.secret[0], 16) && read_number(text, address.secret[1], 16)) {
    return address;
  }
  return Status(StatusCode::protocol_error, "that is no address of a rank's shared memory");
}

std::string Address::to_string() const {
  return fmt::format("{} {} {} {} {:x} {:x}", domain, pid, board, bell, secret[0], secret[1]);
}

}  // namespace hocket::shm
