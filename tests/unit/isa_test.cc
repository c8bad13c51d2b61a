#include "common/isa.h"

#include <gtest/gtest.h>

namespace jitc::common {
namespace {

TEST(Isa, LevelsAndMasksGoBothWays) {
  for (const auto level : isa_levels()) EXPECT_EQ(isa_level_of(isa_mask_of(level).value()), level);
  EXPECT_FALSE(isa_mask_of("pentium"));
  EXPECT_EQ(isa_level_of(0), isa_levels().front());
}

TEST(Isa, CommonLevelIsTheLowerOne) {
  const auto low = isa_mask_of(isa_levels().front()).value();
  const auto high = isa_mask_of(isa_levels().back()).value();
  EXPECT_EQ(isa_level_of(low & high), isa_levels().front());
  EXPECT_EQ(host_isa() & low, low);
}

#if defined(__x86_64__)
TEST(Isa, FlagsSayWhatTheyNeed) {
  const auto need = [](std::vector<std::string> flags) { return isa_needed(flags); };
  EXPECT_EQ(need({"-O3"}).value(), 0b1u);
  EXPECT_EQ(need({"-mavx2", "-O3"}).value(), 0b111u);
  EXPECT_EQ(need({"-mavx512f"}).value(), 0b1111u);
  EXPECT_EQ(need({"-march=x86-64-v2", "-mtune=haswell"}).value(), 0b11u);
  EXPECT_EQ(need({"-march=native"}).value(), host_isa());
  EXPECT_FALSE(need({"-march=haswell"}));
  EXPECT_FALSE(need({"-mxop"}));
}
#endif

}  // namespace
}  // namespace jitc::common
