#include "daemon/service/figures.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "daemon/service/machine.h"

namespace jitc::service {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

Machine machine(const std::string& name) { return Machine(JITC_SOURCE_DIR "/tests/data/machine/" + name, {}); }

// Sources of what binds, one for each kind that there is.
std::vector<std::string> binding(const NodeLimits& limits) {
  std::vector<std::string> sources{limits.source_of(Bounds::kSlots), limits.source_of(Bounds::kBudget),
                                   limits.source_of(Bounds::kPressure)};
  std::erase(sources, "");
  EXPECT_EQ(std::ranges::count_if(limits.figures, &Figure::binding), std::ssize(sources));
  return sources;
}

TEST(NodeLimits, TheNarrowestBinds) {
  const NodeLimits limits = node_limits(machine("cgroup2_nested"), {}, {});
  EXPECT_EQ(limits.slots, 5u);
  EXPECT_EQ(limits.budget_bytes, 380 * kMiB);
  EXPECT_DOUBLE_EQ(limits.pressure_percent, 3);
  EXPECT_EQ(binding(limits), (std::vector<std::string>{"/sys/fs/cgroup/user.slice/user-1000.slice/pids.max",
                                                       "/sys/fs/cgroup/user.slice/user-1000.slice/memory.high",
                                                       "/proc/pressure/memory"}));
}

// Cores are only a default; processes are not.
TEST(NodeLimits, ASettingStandsInThePlaceOfCores) {
  Wishes wishes{.max_compilers = 4, .max_compilers_from = "JITC_MAX_COMPILERS"};
  NodeLimits limits = node_limits(machine("cgroup2_container"), wishes, {});
  EXPECT_EQ(limits.slots, 4u);
  EXPECT_EQ(binding(limits), (std::vector<std::string>{"JITC_MAX_COMPILERS", "/sys/fs/cgroup/memory.max"}));
  EXPECT_TRUE(std::ranges::any_of(limits.figures, [](const Figure& figure) {
    return figure.source == "/sys/fs/cgroup/cpu.max" && figure.value == 2 && !figure.binding;
  }));
  wishes.max_compilers = 100;
  limits = node_limits(machine("hybrid"), wishes, {});
  EXPECT_EQ(limits.slots, 1u);
  EXPECT_EQ(binding(limits).front(), "RLIMIT_NPROC");
}

TEST(NodeLimits, ASettingOfMemoryIsOneMoreLimit) {
  Wishes wishes{.memory_budget = 100 * kMiB, .memory_budget_from = "--memory-budget"};
  EXPECT_EQ(node_limits(machine("cgroup2_container"), wishes, {}).budget_bytes, 100 * kMiB);
  wishes.memory_budget = 4096 * kMiB;
  const NodeLimits limits = node_limits(machine("cgroup2_container"), wishes, {});
  EXPECT_EQ(limits.budget_bytes, 400 * kMiB);
  EXPECT_EQ(binding(limits).back(), "/sys/fs/cgroup/memory.max");
}

TEST(NodeLimits, WhereNothingSaysWhatThereIsASettingStandsOrAnAssumption) {
  NodeLimits limits = node_limits(machine("absent"), {}, {});
  EXPECT_EQ(limits.slots, 1u);
  EXPECT_EQ(limits.budget_bytes, 1024 * kMiB);
  EXPECT_EQ(binding(limits), (std::vector<std::string>{"assumed", "assumed"}));
  limits = node_limits(machine("absent"), {3, "jitc.toml", 200 * kMiB, "jitc.toml"}, {});
  EXPECT_EQ(limits.slots, 3u);
  EXPECT_EQ(limits.budget_bytes, 200 * kMiB);
}

// A compile that starts to use memory must not shrink the budget that it runs under.
TEST(NodeLimits, TheBudgetStaysWhatItIsWhileCompilesUseIt) {
  const NodeLimits limits = node_limits(machine("hybrid"), {}, {.processes = 1, .anonymous_bytes = 48 * kMiB});
  EXPECT_EQ(limits.budget_bytes, 2048 * kMiB);
}

TEST(Pressure, DoesNotFlutter) {
  EXPECT_FALSE(steady_pressure(false, 8));
  EXPECT_TRUE(steady_pressure(true, 8));
  EXPECT_TRUE(steady_pressure(false, 11));
  EXPECT_FALSE(steady_pressure(true, 4));
}

TEST(Slots, FallAtOnceAndRiseToWhatTwoReadingsAllow) {
  EXPECT_EQ(steady_slots(17, 17, 12), 12u);
  EXPECT_EQ(steady_slots(17, 17, 30), 17u);
  EXPECT_EQ(steady_slots(17, 30, 25), 25u);
  EXPECT_EQ(steady_slots(17, 12, 20), 17u);
  EXPECT_EQ(steady_slots(17, 25, 30), 25u);
}

TEST(Budget, FallsAtOnceAndRisesOnlyForMore) {
  EXPECT_EQ(steady_budget(1000, 900), 900u);
  EXPECT_EQ(steady_budget(1000, 970), 1000u);
  EXPECT_EQ(steady_budget(1000, 1100), 1000u);
  EXPECT_EQ(steady_budget(1000, 1200), 1200u);
  EXPECT_EQ(steady_budget(0, 5), 5u);
}

}  // namespace
}  // namespace jitc::service
