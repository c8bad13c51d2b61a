#include "daemon/service/figures.h"

#include <algorithm>
#include <utility>

#include "daemon/service/machine.h"

namespace jitc::service {
namespace {

// When nothing can be read: enough for a few small compiles, and visible as what it is.
constexpr std::uint64_t kAssumedBudget = std::uint64_t{1} << 30;

// Marks the least of these (the largest for pressure) as the one that binds; 0 when there are none.
double bind(std::vector<Figure>& figures) {
  if (figures.empty()) return 0;
  const auto less = [](const Figure& a, const Figure& b) { return a.value < b.value; };
  auto& found = figures.front().bounds == Bounds::kPressure ? *std::ranges::max_element(figures, less)
                                                            : *std::ranges::min_element(figures, less);
  found.binding = true;
  return found.value;
}

void append(std::vector<Figure>& all, std::vector<Figure> more) { std::ranges::move(more, std::back_inserter(all)); }

// All that bounds the slots. What a wish replaces stands beside it, to be seen, and binds nothing.
std::vector<Figure> slots(const Machine& machine, const Wishes& wishes, const Holdings& holdings, double& value) {
  std::vector<Figure> replaced = machine.cores();
  std::vector<Figure> counted = machine.processes(holdings);
  if (wishes.max_compilers > 0) {
    counted.push_back({Bounds::kSlots, static_cast<double>(wishes.max_compilers), wishes.max_compilers_from,
                       "set; in the place of cores"});
  } else {
    append(counted, std::exchange(replaced, {}));
  }
  value = bind(counted);
  append(counted, std::move(replaced));
  return counted;
}

}  // namespace

const char* name_of(Bounds bounds) {
  switch (bounds) {
    case Bounds::kSlots:
      return "slots";
    case Bounds::kBudget:
      return "budget";
    case Bounds::kPressure:
      return "pressure";
  }
  return "";
}

const char* unit_of(Bounds bounds) {
  switch (bounds) {
    case Bounds::kSlots:
      return "compiles";
    case Bounds::kBudget:
      return "bytes";
    case Bounds::kPressure:
      return "percent";
  }
  return "";
}

std::string NodeLimits::source_of(Bounds bounds) const {
  const auto binds = [bounds](const Figure& figure) { return figure.binding && figure.bounds == bounds; };
  const auto found = std::ranges::find_if(figures, binds);
  return found == figures.end() ? std::string() : found->source;
}

NodeLimits node_limits(const Machine& machine, const Wishes& wishes, const Holdings& holdings) {
  NodeLimits limits;
  double value = 0;
  limits.figures = slots(machine, wishes, holdings, value);
  limits.slots = static_cast<std::uint32_t>(std::max(1.0, value));

  std::vector<Figure> memory = machine.memory(holdings);
  if (wishes.memory_budget > 0) {
    memory.push_back({Bounds::kBudget, static_cast<double>(wishes.memory_budget), wishes.memory_budget_from, "set"});
  }
  if (memory.empty()) {
    memory.push_back({Bounds::kBudget, static_cast<double>(kAssumedBudget), "assumed", "nothing says what there is"});
  }
  limits.budget_bytes = static_cast<std::uint64_t>(bind(memory));
  append(limits.figures, std::move(memory));

  std::vector<Figure> pressure = machine.pressure();
  limits.pressure_percent = bind(pressure);
  append(limits.figures, std::move(pressure));
  return limits;
}

std::uint32_t steady_slots(std::uint32_t current, std::uint32_t before, std::uint32_t measured) {
  return measured <= current ? measured : std::max(current, std::min(before, measured));
}

std::uint64_t steady_budget(std::uint64_t current, std::uint64_t measured) {
  const bool lost = measured < current - current / 20;
  const bool gained = measured > current + current / 8;
  return lost || gained ? measured : current;
}

bool steady_pressure(bool current, double percent) { return current ? percent >= 5 : percent > 10; }

}  // namespace jitc::service
