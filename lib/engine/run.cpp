#include "engine/run.hpp"

namespace hocket::engine {

void Run::begin(const Task& new_task, std::uint64_t segment_bytes) {
  task = new_task;
  const Binding& binding = *task.binding;
  const Program& program = binding.program();
  cuts_through = binding.step_bytes_max() > segment_bytes;
  steps.resize(program.places().size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Program::Place& place = program.places()[i];
    steps[i] = {.waits = cuts_through ? place.waits_full : place.waits};
  }
  heads.clear();
  for (const Port& port : program.ports()) heads.push_back(port.first_step);
  if (scratch.size() < binding.scratch_bytes()) scratch.resize(binding.scratch_bytes());
  memory = {const_cast<std::byte*>(task.in), task.out, scratch.data()};  // which no step writes
  prepare();
  steps_left = static_cast<std::uint32_t>(steps.size());
  under_way = 0;
  failure = {};
}

void Run::prepare() {
  if (!task.reduction || !task.reduction->prepares()) return;
  const Binding& binding = *task.binding;
  if (prepared.size() < binding.in_bytes()) prepared.resize(binding.in_bytes());
  task.reduction->prepare(prepared.data(), task.in, binding.in_bytes() / binding.element_bytes());
  memory[0] = prepared.data();
}

void Run::finish() const {
  const Binding& binding = *task.binding;
  if (!task.reduction || !task.reduction->finishes() || binding.out_bytes() == 0) return;
  task.reduction->finish(task.out, task.out, binding.out_bytes() / binding.element_bytes());
}

}  // namespace hocket::engine
