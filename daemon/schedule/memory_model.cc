#include "daemon/schedule/memory_model.h"

#include <algorithm>
#include <bit>

namespace jitc::schedule {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

constexpr double kLargestCorrection = 4096;
constexpr double kSmallestCorrection = 0.25;
constexpr double kFallPerPeak = 0.25;
// A prediction far above any machine: keeps every product below 2^63.
constexpr double kMost = static_cast<double>(std::uint64_t{1} << 50);

// Peak = empty + the sum of count times bytes. Fitted to printed pointwise functions of 7 KB to 1.7 MB, rounded up to
// the dearest of them: calls that may set errno cost gcc twice what others do. An external compiler's tree includes the
// child that inspected the source before. A level of nesting costs stack.
struct Costs {
  std::uint64_t empty;
  double per_byte, per_byte_of_largest_function, per_call, per_level;
};

Costs costs_of(const std::string& compiler, int optimisation) {
  if (compiler == "clang") return {80 * kMiB, 110, 20, 2 * kKiB, 16 * kKiB};
  const bool optimises = optimisation > 0;
  const double per_byte = optimises ? 500 : 620;  // cc1 frees between its passes, and does not without them
  if (compiler == "gcc") return {80 * kMiB, per_byte, 50, 2 * kKiB, 16 * kKiB};
  return {150 * kMiB, per_byte, 50, 2 * kKiB, 16 * kKiB};  // unknown: the dearer of both
}

double text_cost(const Features& features, const Costs& costs) {
  const double cost = static_cast<double>(features.bytes) * costs.per_byte +
                      static_cast<double>(features.largest_function) * costs.per_byte_of_largest_function +
                      static_cast<double>(features.calls) * costs.per_call +
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

std::uint64_t MemoryModel::reservation_for(std::uint64_t predicted) { return predicted + predicted / 4; }

std::uint64_t MemoryModel::limit_for(std::uint64_t predicted) {
  return predicted + std::max<std::uint64_t>(predicted / 2, 64 * kMiB);
}

}  // namespace jitc::schedule
