// C texts as loaded libraries, for comparisons of the bits that they compute.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temporary_directory.h"

namespace jitc::testing {

struct CompilerSetting {
  std::string compiler;
  std::string level;
  bool native = false;
};

inline void PrintTo(const CompilerSetting& setting, std::ostream* stream) {
  *stream << setting.compiler << ' ' << setting.level << (setting.native ? " -march=native" : "");
}

inline std::string name_of(const ::testing::TestParamInfo<CompilerSetting>& setting) {
  return setting.param.compiler.substr(0, setting.param.compiler.find('-')) + "_O" + setting.param.level.substr(2) +
         (setting.param.native ? "_native" : "");
}

inline auto all_compiler_settings() {
  using Setting = CompilerSetting;
  return ::testing::Values(Setting{"gcc", "-O0"}, Setting{"gcc", "-O0", true}, Setting{"gcc", "-O3"},
                           Setting{"gcc", "-O3", true}, Setting{"clang-19", "-O0"}, Setting{"clang-19", "-O0", true},
                           Setting{"clang-19", "-O3"}, Setting{"clang-19", "-O3", true});
}

class CompiledTextTest : public ::testing::TestWithParam<CompilerSetting> {
 protected:
  struct Close {
    void operator()(void* library) const { ::dlclose(library); }
  };
  using Library = std::unique_ptr<void, Close>;

  Library compile(const std::string& name, const std::string& text) const {
    const std::string source = directory_.path() + "/" + name + ".c";
    const std::string library = directory_.path() + "/" + name + ".so";
    std::ofstream(source) << text;
    std::vector<std::string> command{"/usr/bin/" + GetParam().compiler,
                                     GetParam().level,
                                     "-std=gnu11",
                                     "-ffp-contract=off",
                                     "-fno-math-errno",
                                     "-fno-trapping-math",
                                     "-fPIC",
                                     "-shared",
                                     "-o",
                                     library,
                                     source,
                                     "-lm"};
    if (GetParam().native) command.emplace_back("-march=native");
    const Finished finished = run(command);
    EXPECT_EQ(finished.exit_code, 0) << finished.err.substr(0, 2000);
    Library loaded(::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL));
    if (!loaded) throw std::runtime_error("cannot load " + library);
    return loaded;
  }

 private:
  TemporaryDirectory directory_;
};

// NaN, infinities, both zeros, subnormals and the largest; any bits; mostly ordinary numbers.
inline double random_number(std::mt19937_64& random) {
  using Limits = std::numeric_limits<double>;
  static constexpr double kSpecial[] = {0.0,
                                        -0.0,
                                        1.0,
                                        -1.0,
                                        0.5,
                                        Limits::infinity(),
                                        -Limits::infinity(),
                                        Limits::quiet_NaN(),
                                        Limits::denorm_min(),
                                        -Limits::min() / 3,
                                        Limits::max()};
  switch (random() % 8) {
    case 0:
      return kSpecial[random() % std::size(kSpecial)];
    case 1:
      return std::bit_cast<double>(random());
    default:
      return std::normal_distribution<double>(0.0, 3.0)(random);
  }
}

// Any NaN equals any NaN.
inline std::size_t count_differences(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  std::size_t differences = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    const bool both_nan = std::isnan(a[i]) && std::isnan(b[i]);
    if (!both_nan && std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i])) ++differences;
  }
  return differences;
}

}  // namespace jitc::testing
