#include "daemon/schedule/memory_model.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "daemon/schedule/features.h"

namespace jitc::schedule {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// A printed pointwise function of so many bytes, calls as dense as in the printed Stokes sources.
Features printed(std::string compiler, int optimisation, std::uint64_t bytes) {
  return {.compiler = std::move(compiler),
          .optimisation = optimisation,
          .bytes = bytes,
          .calls = bytes / 50,
          .largest_function = bytes / 2,
          .nesting = 40};
}

TEST(Features, TheLastOptimisationFlagCounts) {
  using Flags = std::vector<std::string>;
  EXPECT_EQ(optimisation_of(Flags{}), 0);
  EXPECT_EQ(optimisation_of(Flags{"-O3", "-g0"}), 3);
  EXPECT_EQ(optimisation_of(Flags{"-O3", "-O0"}), 0);
  EXPECT_EQ(optimisation_of(Flags{"-O"}), 1);
  EXPECT_EQ(optimisation_of(Flags{"-Og"}), 1);
  EXPECT_EQ(optimisation_of(Flags{"-Os"}), 2);
  EXPECT_EQ(optimisation_of(Flags{"-Ofast"}), 3);
  EXPECT_EQ(optimisation_of(Flags{"-DX=-O3"}), 0);
}

TEST(Features, MathSetsErrnoUnlessAFlagSaysOtherwise) {
  using Flags = std::vector<std::string>;
  EXPECT_TRUE(math_errno_of(Flags{"-O3"}));
  EXPECT_FALSE(math_errno_of(Flags{"-O3", "-fno-math-errno"}));
  EXPECT_FALSE(math_errno_of(Flags{"-Ofast"}));
  EXPECT_TRUE(math_errno_of(Flags{"-fno-math-errno", "-fmath-errno"}));
}

// What was measured on this kind of source: the prediction lies above the peak, and not ridiculously so.
TEST(MemoryModel, CoversMeasuredPeaks) {
  struct Peak {
    const char* compiler;
    int optimisation;
    std::uint64_t bytes, peak_mib;
  };
  const MemoryModel model;
  for (const Peak& peak : {Peak{"clang", 3, 500, 79}, Peak{"clang", 3, 1'700'000, 203}, Peak{"gcc", 3, 500, 56},
                           Peak{"gcc", 3, 79'314, 105}, Peak{"gcc", 3, 141'379, 127}, Peak{"gcc", 3, 308'158, 306},
                           Peak{"gcc", 3, 906'814, 336}, Peak{"gcc", 0, 141'379, 175}, Peak{"gcc", 0, 308'158, 324},
                           Peak{"gcc", 0, 906'814, 640}}) {
    const std::uint64_t predicted = model.predict(printed(peak.compiler, peak.optimisation, peak.bytes));
    EXPECT_GE(MemoryModel::limit_for(predicted), peak.peak_mib * kMiB) << peak.compiler << ' ' << peak.bytes;
    EXPECT_LE(predicted, 2 * peak.peak_mib * kMiB) << peak.compiler << ' ' << peak.bytes;
  }
}

// Texts of the corpus by `./run bench prediction`, without errno: never below, and less than half above.
TEST(MemoryModel, IsCloseToTheCorpus) {
  struct Text {
    std::uint64_t bytes, calls, largest_function, nesting;
    double gcc_o0, gcc_o3, clang_o0, clang_o3;  // MiB
  };
  const MemoryModel model;
  for (const Text& text : {Text{25'159, 447, 13'597, 5, 87.4, 99.7, 61.9, 63.4},
                           Text{141'379, 3'579, 116'357, 5, 181.5, 138.0, 86.3, 74.0},
                           Text{262'577, 385, 245'425, 3, 233.1, 140.0, 97.1, 78.4},
                           Text{363'993, 9'107, 277'249, 10, 285.6, 169.1, 115.4, 79.1},
                           Text{906'814, 16'008, 806'300, 7, 646.8, 262.8, 210.8, 110.3},
                           Text{1'434'610, 36'323, 1'110'069, 10, 873.5, 378.2, 280.6, 141.1}}) {
    const auto ratio = [&](const char* compiler, int optimisation, double peak_mib) {
      const Features features{compiler,   optimisation,          false,       text.bytes,
                              text.calls, text.largest_function, text.nesting};
      return static_cast<double>(model.predict(features)) / (peak_mib * kMiB);
    };
    for (const double one : {ratio("gcc", 0, text.gcc_o0), ratio("gcc", 3, text.gcc_o3),
                             ratio("clang", 0, text.clang_o0), ratio("clang", 3, text.clang_o3)}) {
      EXPECT_GE(one, 0.99) << text.bytes;
      EXPECT_LE(one, 1.4) << text.bytes;
    }
  }
}

TEST(MemoryModel, NeverBelowAnEmptySource) {
  MemoryModel model;
  const Features empty{.compiler = "gcc"};
  const std::uint64_t before = model.predict(empty);
  EXPECT_GE(before, 30 * kMiB);
  for (int i = 0; i < 100; ++i) model.learn(empty, 1);
  EXPECT_GE(model.predict(empty), 30 * kMiB);
}

TEST(MemoryModel, AnUnknownCompilerIsTakenForTheDearest) {
  const MemoryModel model;
  for (const char* known : {"clang", "gcc"}) {
    EXPECT_GE(model.predict(printed("/opt/icx", 3, 100'000)), model.predict(printed(known, 3, 100'000)));
  }
}

TEST(MemoryModel, NestingCosts) {
  const MemoryModel model;
  Features flat = printed("clang", 3, 20'000), deep = flat;
  deep.nesting = 10'000;
  EXPECT_GE(model.predict(deep), model.predict(flat) + 87 * kMiB);  // measured
}

TEST(MemoryModel, ALargerPeakCorrectsAtOnce) {
  MemoryModel model;
  const Features features = printed("gcc", 3, 1'450'000);
  model.learn(features, 1'320 * kMiB);
  EXPECT_GE(model.predict(features), 1'319 * kMiB);
  EXPECT_LE(model.predict(features), 1'321 * kMiB);
}

TEST(MemoryModel, ASmallerPeakCorrectsSlowlyAndArrives) {
  MemoryModel model;
  const Features features = printed("gcc", 3, 1'700'000);
  const std::uint64_t first = model.predict(features);
  model.learn(features, 432 * kMiB);
  EXPECT_LT(model.predict(features), first);
  EXPECT_GT(model.predict(features), 432 * kMiB + (first - 432 * kMiB) / 2);
  for (int i = 0; i < 30; ++i) model.learn(features, 432 * kMiB);
  EXPECT_NEAR(static_cast<double>(model.predict(features)), 432.0 * kMiB, 2.0 * kMiB);
}

TEST(MemoryModel, ACorrectionStaysInItsFamily) {
  MemoryModel model;
  const Features small = printed("gcc", 3, 5'000), other_level = printed("gcc", 0, 1'700'000),
                 other_compiler = printed("clang", 3, 1'700'000);
  const auto before = std::tuple(model.predict(small), model.predict(other_level), model.predict(other_compiler));
  model.learn(printed("gcc", 3, 1'700'000), 4'000 * kMiB);
  EXPECT_EQ(before, std::tuple(model.predict(small), model.predict(other_level), model.predict(other_compiler)));
}

// A stand-in compiler that takes 1 GB for any text.
TEST(MemoryModel, LearnsACompilerLargerThanItsTable) {
  MemoryModel model;
  const Features tiny{.compiler = "gcc", .bytes = 30};
  model.learn(tiny, 1'024 * kMiB);
  EXPECT_GE(model.predict(tiny), 1'023 * kMiB);
}

TEST(MemoryModel, AHugeTextDoesNotOverflow) {
  const MemoryModel model;
  const Features features{.compiler = "gcc", .optimisation = 0, .bytes = ~std::uint64_t{0}, .calls = ~std::uint64_t{0}};
  const std::uint64_t predicted = model.predict(features);
  EXPECT_GT(predicted, std::uint64_t{1} << 49);
  EXPECT_GT(MemoryModel::limit_for(predicted), predicted);
  EXPECT_GT(2 * MemoryModel::limit_for(predicted), MemoryModel::limit_for(predicted));
}

TEST(MemoryModel, TheLimitLeavesRoomAboveThePrediction) {
  for (const std::uint64_t predicted : {36 * kMiB, 80 * kMiB, 1'000 * kMiB}) {
    EXPECT_GE(MemoryModel::limit_for(predicted), predicted + predicted / 4);
    EXPECT_GE(MemoryModel::limit_for(predicted), predicted + 48 * kMiB);
  }
}

}  // namespace
}  // namespace jitc::schedule
