#include "common/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace jitc::common {
namespace {

#if defined(__x86_64__)
constexpr std::array<std::string_view, 4> kLevels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

IsaMask cpu_mask() {
  __builtin_cpu_init();
  // The psABI's levels; GCC's runtime also checks that the operating system keeps the wide registers.
  if (__builtin_cpu_supports("x86-64-v4")) return 0b1111;
  if (__builtin_cpu_supports("x86-64-v3")) return 0b0111;
  if (__builtin_cpu_supports("x86-64-v2")) return 0b0011;
  return 0b0001;
}

struct FlagNeed {
  std::string_view flag;
  std::size_t level;
};
// Features of the psABI levels by their flags; a feature outside them has no entry and its flag is refused.
constexpr std::array kFlagNeeds{
    FlagNeed{"-msse", 0},      FlagNeed{"-msse2", 0},    FlagNeed{"-mmmx", 0},      FlagNeed{"-mfxsr", 0},
    FlagNeed{"-msse3", 1},     FlagNeed{"-mssse3", 1},   FlagNeed{"-msse4.1", 1},   FlagNeed{"-msse4.2", 1},
    FlagNeed{"-msse4", 1},     FlagNeed{"-mpopcnt", 1},  FlagNeed{"-mcx16", 1},     FlagNeed{"-msahf", 1},
    FlagNeed{"-mavx", 2},      FlagNeed{"-mavx2", 2},    FlagNeed{"-mbmi", 2},      FlagNeed{"-mbmi2", 2},
    FlagNeed{"-mf16c", 2},     FlagNeed{"-mfma", 2},     FlagNeed{"-mlzcnt", 2},    FlagNeed{"-mmovbe", 2},
    FlagNeed{"-mxsave", 2},    FlagNeed{"-mavx512f", 3}, FlagNeed{"-mavx512bw", 3}, FlagNeed{"-mavx512cd", 3},
    FlagNeed{"-mavx512dq", 3}, FlagNeed{"-mavx512vl", 3}};
// -m flags that choose code without needing an instruction.
constexpr std::array<std::string_view, 9> kHarmless{"-m64",
                                                    "-mfpmath=sse",
                                                    "-mprefer-vector-width=128",
                                                    "-mprefer-vector-width=256",
                                                    "-mprefer-vector-width=512",
                                                    "-mrecip=none",
                                                    "-mno-red-zone",
                                                    "-mred-zone",
                                                    "-mcmodel=small"};
#else
#if defined(__aarch64__)
constexpr std::array<std::string_view, 1> kLevels{"armv8-a"};
#else
constexpr std::array<std::string_view, 1> kLevels{"baseline"};
#endif
IsaMask cpu_mask() { return 1; }
struct FlagNeed {
  std::string_view flag;
  std::size_t level;
};
constexpr std::array<FlagNeed, 0> kFlagNeeds{};
constexpr std::array<std::string_view, 1> kHarmless{"-m64"};
#endif

IsaMask mask_up_to(std::size_t level) { return (IsaMask{2} << level) - 1; }

bool chooses_code_only(std::string_view flag) {
  return flag.starts_with("-mtune=") || flag.starts_with("-mno-") ||
         std::ranges::find(kHarmless, flag) != kHarmless.end();
}

Result<IsaMask> need_of(const std::string& flag) {
  if (flag == "-march=native") return host_isa();
  constexpr std::string_view kArch = "-march=";
  if (flag.starts_with(kArch)) {
    if (auto mask = isa_mask_of(std::string_view(flag).substr(kArch.size()))) return mask;
  } else if (chooses_code_only(flag)) {
    return mask_up_to(0);
  } else if (const auto it = std::ranges::find(kFlagNeeds, std::string_view(flag), &FlagNeed::flag);
             it != kFlagNeeds.end()) {
    return mask_up_to(it->level);
  }
  return fail(ErrorKind::kRefused, "it is not known which CPUs can run what this flag gives", flag,
              "use --isa with common, native or a level such as " + std::string(kLevels.back()));
}

}  // namespace

std::span<const std::string_view> isa_levels() { return kLevels; }

IsaMask host_isa() {
  static const IsaMask mask = [] {
    IsaMask lowered = ~IsaMask{0};
    if (const char* text = std::getenv("JITC_TEST_ISA_MASK")) lowered = std::strtoull(text, nullptr, 0);
    return (cpu_mask() & lowered) | 1;
  }();
  return mask;
}

std::string_view isa_level_of(IsaMask mask) {
  std::size_t level = 0;
  while (level + 1 < kLevels.size() && (mask >> (level + 1) & 1) != 0) ++level;
  return kLevels[level];
}

Result<IsaMask> isa_mask_of(std::string_view level) {
  const auto it = std::ranges::find(kLevels, level);
  if (it == kLevels.end())
    return fail(ErrorKind::kUsage, "unknown instruction set level", std::string(level),
                "levels here: " + std::string(kLevels.front()) + " to " + std::string(kLevels.back()));
  return mask_up_to(static_cast<std::size_t>(it - kLevels.begin()));
}

Result<IsaMask> isa_needed(std::span<const std::string> flags) {
  IsaMask mask = mask_up_to(0);
  for (const auto& flag : flags) {
    if (!flag.starts_with("-m")) continue;
    auto need = need_of(flag);
    if (!need) return need;
    mask |= *need;
  }
  return mask;
}

}  // namespace jitc::common
