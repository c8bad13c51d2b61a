// Instruction set levels: what this CPU has, what flags need, what a job's ranks have in common.
// A mask has one bit per level; a CPU of level n has bits 0..n, so that the common level of a job is the AND of masks.
// From bit 8 on it has one bit per feature: what compilers for one very CPU (native) use lies between levels and beyond
// them, and two CPUs of one level may differ in it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::common {

using IsaMask = std::uint64_t;

// A bit that no CPU has: what a compiler's command left (common/command.h) is kept as an artifact, and is no module
// that a solver may load, whatever it looks like.
inline constexpr IsaMask kNotAModule = IsaMask{1} << 63;

// x86-64, x86-64-v2, x86-64-v3, x86-64-v4; elsewhere one level named after the machine.
std::span<const std::string_view> isa_levels();
// This CPU's mask. JITC_TEST_ISA_MASK lowers it (never raises it), so that tests can play an older CPU.
IsaMask host_isa();
// "x86-64-v3", or with features that the level does not have, for people: "x86-64-v3 +avx512f".
std::string isa_text(IsaMask mask);
// The highest level in `mask` (its lowest levels must be there; an empty mask gives the baseline).
std::string_view isa_level_of(IsaMask mask);
// All bits up to and including the level; kUsage for an unknown name.
Result<IsaMask> isa_mask_of(std::string_view level);
// The mask that code compiled with these -m flags needs, on top of the baseline; kRefused for a -march or -m flag whose
// need is not known. "-march=native" needs host_isa(), features included.
Result<IsaMask> isa_needed(std::span<const std::string> flags);

}  // namespace jitc::common
