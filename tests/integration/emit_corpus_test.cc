// The corpus's problems as trees and shared: the same 64 bits under one compiler and one set of flags.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "client/graph/emit.h"
#include "client/graph/import_json.h"
#include "client/graph/problem.h"
#include "tests/support/compiled_text.h"

namespace jitc::graph {
namespace {

namespace fs = std::filesystem;

constexpr int kPoints = 5000;
constexpr std::size_t kLongest = 128;  // elements of an input, at most

// Inputs are read from anywhere in one pool of numbers.
class Inputs {
 public:
  Inputs() {
    for (double& number : pool_) number = testing::random_number(random_);
    // Half of the points are such that roots and powers exist.
    std::lognormal_distribution<double> positive(0.0, 1.0);
    for (double& number : positive_) number = positive(random_);
  }
  void next() { is_positive_ = !is_positive_; }
  const double* array() {
    const std::vector<double>& pool = is_positive_ ? positive_ : pool_;
    return pool.data() + random_() % (pool.size() - kLongest);
  }

 private:
  std::mt19937_64 random_{3};
  std::vector<double> pool_ = std::vector<double>(4096);
  std::vector<double> positive_ = std::vector<double>(4096);
  bool is_positive_ = false;
};

void call(void* function, Signature signature, Inputs& in, double* out) {
  const int none[1] = {0};
  const double* u = in.array();
  const double* u_x = in.array();
  const double* a = in.array();
  const double* a_x = in.array();
  const double* x = in.array();
  const double* n = in.array();
  const double* constants = in.array();
  const double t = *in.array();
  using Ints = const int*;
  using Doubles = const double*;
  switch (signature) {
    case Signature::kResidual:
      return reinterpret_cast<void (*)(int, int, int, Ints, Ints, Doubles, Doubles, Doubles, Ints, Ints, Doubles,
                                       Doubles, Doubles, double, Doubles, int, Doubles, double*)>(function)(
          0, 0, 0, none, none, u, u, u_x, none, none, a, a, a_x, t, x, 0, constants, out);
    case Signature::kJacobian:
      return reinterpret_cast<void (*)(int, int, int, Ints, Ints, Doubles, Doubles, Doubles, Ints, Ints, Doubles,
                                       Doubles, Doubles, double, double, Doubles, int, Doubles, double*)>(function)(
          0, 0, 0, none, none, u, u, u_x, none, none, a, a, a_x, t, t, x, 0, constants, out);
    case Signature::kBoundaryResidual:
      return reinterpret_cast<void (*)(int, int, int, Ints, Ints, Doubles, Doubles, Doubles, Ints, Ints, Doubles,
                                       Doubles, Doubles, double, Doubles, Doubles, int, Doubles, double*)>(function)(
          0, 0, 0, none, none, u, u, u_x, none, none, a, a, a_x, t, x, n, 0, constants, out);
    case Signature::kBoundaryJacobian:
      return reinterpret_cast<void (*)(int, int, int, Ints, Ints, Doubles, Doubles, Doubles, Ints, Ints, Doubles,
                                       Doubles, Doubles, double, double, Doubles, Doubles, int, Doubles, double*)>(
          function)(0, 0, 0, none, none, u, u, u_x, none, none, a, a, a_x, t, t, x, n, 0, constants, out);
  }
}

class CorpusBits : public testing::CompiledTextTest {
 protected:
  std::vector<double> values(const std::string& name, const std::string& text,
                             std::span<const PointwiseFunction> functions) const {
    const Library library = compile(name, text);
    std::vector<double> all;
    for (const PointwiseFunction& function : functions) {
      void* address = ::dlsym(library.get(), function.name.c_str());
      std::vector<double> out(function.outputs.size());
      Inputs inputs;
      for (int i = 0; i < kPoints; ++i) {
        inputs.next();
        call(address, function.signature, inputs, out.data());
        all.insert(all.end(), out.begin(), out.end());
      }
    }
    return all;
  }
};

TEST_P(CorpusBits, DoNotDependOnSharing) {
  // Optimizing compilers take minutes for larger trees.
  const std::size_t largest = GetParam().level == "-O0" ? 100'000 : 60'000;
  std::size_t compared = 0;
  std::size_t finite = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(JITC_SOURCE_DIR "/tests/data/corpus")) {
    if (!fs::exists(entry.path() / "problem.json")) continue;
    std::ifstream file(entry.path() / "problem.json");
    auto problem = import_json(std::string(std::istreambuf_iterator<char>(file), {}));
    ASSERT_TRUE(problem.has_value()) << common::to_line(problem.error());
    const auto functions = lower(*problem);
    ASSERT_TRUE(functions.has_value()) << common::to_line(functions.error());
    const auto trees = emit(problem->graph, *functions, {.sharing = Sharing::kTrees});
    ASSERT_TRUE(trees.has_value()) << common::to_line(trees.error());
    if (trees->size() > largest) continue;
    const auto expected = values("trees", *trees, *functions);
    for (const bool lazy : {false, true}) {
      const auto shared = emit(problem->graph, *functions, {.sharing = Sharing::kShared, .lazy_arms = lazy});
      ASSERT_TRUE(shared.has_value()) << common::to_line(shared.error());
      EXPECT_EQ(testing::count_differences(expected, values("shared", *shared, *functions)), 0U) << entry.path();
    }
    ++compared;
    finite += static_cast<std::size_t>(std::ranges::count_if(expected, [](double x) { return std::isfinite(x); }));
  }
  EXPECT_GE(compared, 6U);
  EXPECT_GE(finite, 100'000U);
}

INSTANTIATE_TEST_SUITE_P(Compilers, CorpusBits, testing::all_compiler_settings(),
                         [](const auto& setting) { return testing::name_of(setting); });

}  // namespace
}  // namespace jitc::graph
