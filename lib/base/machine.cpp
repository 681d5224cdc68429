#include "base/machine.hpp"

#include <fstream>

namespace hocket {

std::string own_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  return std::getline(file, id) ? id : std::string();
}

}  // namespace hocket
