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
// A Sandy Bridge has AVX and is of level 2: so is a Nehalem, which has not.
TEST(Isa, FeaturesBesideTheLevelAreInTheMaskAndInItsText) {
  constexpr IsaMask kAvx = IsaMask{1} << 14, kFirst512 = IsaMask{1} << 25, kGfni = IsaMask{1} << 39;
  EXPECT_EQ(isa_text(0b11), "x86-64-v2");
  EXPECT_EQ(isa_text(0b11 | kAvx), "x86-64-v2 +avx");
  EXPECT_EQ(isa_text(0b111 | kAvx | kFirst512), "x86-64-v3 +avx512f") << "what the level has need not be said";
  EXPECT_EQ(isa_text(0b1111 | kFirst512 | kGfni), "x86-64-v4 +gfni");
  EXPECT_EQ(isa_level_of(0b11 | kAvx), "x86-64-v2");
  __builtin_cpu_init();
  EXPECT_EQ((host_isa() & kAvx) != 0, __builtin_cpu_supports("avx") != 0);
  EXPECT_EQ((host_isa() & kGfni) != 0, __builtin_cpu_supports("gfni") != 0);
  EXPECT_EQ(isa_mask_of("x86-64-v4").value() & ~IsaMask{0xff}, 0u) << "a level is no CPU";
}

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
