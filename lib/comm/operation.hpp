// An operation as it is handed to the engine, and what it borrows.
#pragma once

#include <cstdint>
#include <memory>

#include "comm/planner.hpp"
#include "engine/run.hpp"

namespace hocket::comm {

struct Operation {
  engine::Task task = {};
  std::shared_ptr<const Plan> plan = {};
  std::uint64_t number = 0;  // among those of its communicator
};

}  // namespace hocket::comm
