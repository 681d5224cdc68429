#include <algorithm>
#include <random>
#include <utility>
#include <vector>

#include "simulator/agenda.hpp"
#include "support/catch.hpp"

using namespace hocket::sim;

TEST_CASE("events come in the order of their times, and of one time in that of their adding") {
  std::mt19937_64 random(7);
  Agenda<int> agenda;
  std::vector<std::pair<Time, int>> waiting;
  int added = 0;
  const auto add = [&] {
    const Time span = Time{1} << random() % 40;
    const Time time = agenda.now() + random() % span / 4;
    agenda.add(time, added);
    waiting.emplace_back(time, added++);
  };
  for (int i = 0; i < 100; ++i) add();
  bool is_right = true;
  while (!agenda.empty()) {
    const auto next = std::ranges::min_element(waiting);
    is_right &= agenda.take_next() == next->second && agenda.now() == next->first;
    waiting.erase(next);
    for (std::uint64_t i = random() % 3; i > 0 && added < 3000; --i) add();
  }
  CHECK(is_right);
  CHECK(waiting.empty());
  CHECK(added > 1000);
}
