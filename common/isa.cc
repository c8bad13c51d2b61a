#include "common/isa.h"

#include <algorithm>
#include <array>
#include <cstdlib>

namespace jitc::common {
namespace {

constexpr std::size_t kFirstFeature = 8;  // its bit

#if defined(__x86_64__)
constexpr std::array<std::string_view, 4> kLevels{"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

// What compilers use by themselves where they are told that the CPU has it, and the level that has it (kLevels.size():
// none). Artifacts hold these bits: new features come at the end.
struct Feature {
  std::string_view name;
  std::size_t level;
};
constexpr std::array kFeatures{
    Feature{"sse3", 1},        Feature{"ssse3", 1},      Feature{"sse4.1", 1},       Feature{"sse4.2", 1},
    Feature{"popcnt", 1},      Feature{"sse4a", 4},      Feature{"avx", 2},          Feature{"xop", 4},
    Feature{"fma4", 4},        Feature{"fma", 2},        Feature{"f16c", 2},         Feature{"bmi", 2},
    Feature{"bmi2", 2},        Feature{"lzcnt", 2},      Feature{"movbe", 2},        Feature{"tbm", 4},
    Feature{"avx2", 2},        Feature{"avx512f", 3},    Feature{"avx512cd", 3},     Feature{"avx512bw", 3},
    Feature{"avx512dq", 3},    Feature{"avx512vl", 3},   Feature{"avx512ifma", 4},   Feature{"avx512vbmi", 4},
    Feature{"avx512vbmi2", 4}, Feature{"avx512vnni", 4}, Feature{"avx512bitalg", 4}, Feature{"avx512vpopcntdq", 4},
    Feature{"avx512bf16", 4},  Feature{"avx512fp16", 4}, Feature{"avxvnni", 4},      Feature{"gfni", 4},
    Feature{"aes", 4},         Feature{"vaes", 4},       Feature{"pclmul", 4},       Feature{"vpclmulqdq", 4},
    Feature{"sha", 4},         Feature{"adx", 4}};

IsaMask level_mask() {
  if (__builtin_cpu_supports("x86-64-v4")) return 0b1111;
  if (__builtin_cpu_supports("x86-64-v3")) return 0b0111;
  if (__builtin_cpu_supports("x86-64-v2")) return 0b0011;
  return 0b0001;
}

// In the order of kFeatures. The builtin takes literals only.
IsaMask feature_mask() {
  IsaMask mask = 0;
  std::size_t feature = 0;
  const auto next = [&](int is_supported) { mask |= IsaMask{is_supported != 0} << (kFirstFeature + feature++); };
#define JITC_NEXT(name) next(__builtin_cpu_supports(name))
  JITC_NEXT("sse3"), JITC_NEXT("ssse3"), JITC_NEXT("sse4.1"), JITC_NEXT("sse4.2"), JITC_NEXT("popcnt");
  JITC_NEXT("sse4a"), JITC_NEXT("avx"), JITC_NEXT("xop"), JITC_NEXT("fma4"), JITC_NEXT("fma"), JITC_NEXT("f16c");
  JITC_NEXT("bmi"), JITC_NEXT("bmi2"), JITC_NEXT("lzcnt"), JITC_NEXT("movbe"), JITC_NEXT("tbm"), JITC_NEXT("avx2");
  JITC_NEXT("avx512f"), JITC_NEXT("avx512cd"), JITC_NEXT("avx512bw"), JITC_NEXT("avx512dq"), JITC_NEXT("avx512vl");
  JITC_NEXT("avx512ifma"), JITC_NEXT("avx512vbmi"), JITC_NEXT("avx512vbmi2"), JITC_NEXT("avx512vnni");
  JITC_NEXT("avx512bitalg"), JITC_NEXT("avx512vpopcntdq"), JITC_NEXT("avx512bf16"), JITC_NEXT("avx512fp16");
  JITC_NEXT("avxvnni"), JITC_NEXT("gfni"), JITC_NEXT("aes"), JITC_NEXT("vaes"), JITC_NEXT("pclmul");
  JITC_NEXT("vpclmulqdq"), JITC_NEXT("sha"), JITC_NEXT("adx");
#undef JITC_NEXT
  return mask;
}

// GCC's runtime also checks that the operating system keeps the wide registers.
IsaMask cpu_mask() {
  __builtin_cpu_init();
  return level_mask() | feature_mask();
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
struct Feature {
  std::string_view name;
  std::size_t level;
};
constexpr std::array<Feature, 0> kFeatures{};
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

std::string isa_text(IsaMask mask) {
  const std::string_view name = isa_level_of(mask);
  const auto level = static_cast<std::size_t>(std::ranges::find(kLevels, name) - kLevels.begin());
  std::string text(name);
  for (std::size_t i = 0; i < kFeatures.size(); ++i)
    if ((mask >> (kFirstFeature + i) & 1) != 0 && kFeatures[i].level > level)
      text += " +" + std::string(kFeatures[i].name);
  return text;
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
