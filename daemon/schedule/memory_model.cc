#include "daemon/schedule/memory_model.h"

#include <algorithm>
#include <bit>

namespace jitc::schedule {
namespace {

constexpr double kKiB = 1024;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

constexpr double kLargestCorrection = 4096;
constexpr double kSmallestCorrection = 0.25;
constexpr double kFallPerPeak = 0.25;
// A prediction far above any machine: keeps every product below 2^63.
constexpr double kMost = static_cast<double>(std::uint64_t{1} << 50);

// Peak = empty + the sum of count times bytes. Fitted to what `./run bench prediction` shows, a tenth above the middle.
// Calls that may set errno end a basic block: they cost an optimiser much more than others. A level of nesting costs
// stack. An external compiler's tree has a supervisor, a driver and, before them, the child that inspected the source.
struct Costs {
  std::uint64_t empty;
  double per_byte, per_byte_of_largest_function, per_call, per_call_with_errno, per_level;
};

Costs costs_of(const std::string& compiler, int optimisation) {
  const bool optimises = optimisation > 0;  // passes free what they took; without them it stays until the end
  if (compiler == "clang" && optimises) return {68 * kMiB, 60, 0, 0.25 * kKiB, 6 * kKiB, 16 * kKiB};
  if (compiler == "clang") return {66 * kMiB, 40, 150, 1.5 * kKiB, 1.5 * kKiB, 16 * kKiB};
  if (compiler == "gcc" && optimises) return {106 * kMiB, 210, 0, kKiB, 14 * kKiB, 16 * kKiB};
  if (compiler == "gcc") return {100 * kMiB, 430, 200, 5 * kKiB, 5 * kKiB, 16 * kKiB};
  return {150 * kMiB, 430, 200, 5 * kKiB, 14 * kKiB, 16 * kKiB};  // unknown: the dearest of all
}

double text_cost(const Features& features, const Costs& costs) {
  const double cost =
      static_cast<double>(features.bytes) * costs.per_byte +
      static_cast<double>(features.largest_function) * costs.per_byte_of_largest_function +
      static_cast<double>(features.calls) * (features.math_errno ? costs.per_call_with_errno : costs.per_call) +
      static_cast<double>(features.nesting) * costs.per_level;
  // A tiny text adds next to nothing to an empty source: without a floor its noise would look like a factor, and a
  // compiler that is larger than its table says could not be learned.
  return std::max(cost, static_cast<double>(kMiB));
}

}  // namespace

MemoryModel::Family MemoryModel::family_of(const Features& features) {
  return {features.compiler, features.optimisation, std::bit_width(features.bytes)};
}

std::uint64_t MemoryModel::predict(const Features& features) const {
  const Costs costs = costs_of(features.compiler, features.optimisation);
  const auto found = corrections_.find(family_of(features));
  const double correction = found == corrections_.end() ? 1.0 : found->second;
  return costs.empty + static_cast<std::uint64_t>(std::min(text_cost(features, costs) * correction, kMost));
}

void MemoryModel::learn(const Features& features, std::uint64_t peak_bytes) {
  const Costs costs = costs_of(features.compiler, features.optimisation);
  const double seen = peak_bytes > costs.empty ? static_cast<double>(peak_bytes - costs.empty) : 0.0;
  const double ratio = seen / text_cost(features, costs);
  double& correction = corrections_.try_emplace(family_of(features), 1.0).first->second;
  correction = ratio >= correction ? ratio : correction + kFallPerPeak * (ratio - correction);
  correction = std::clamp(correction, kSmallestCorrection, kLargestCorrection);
}

std::uint64_t MemoryModel::limit_for(std::uint64_t predicted) {
  return predicted + std::max<std::uint64_t>(predicted / 4, 48 * kMiB);
}

}  // namespace jitc::schedule
