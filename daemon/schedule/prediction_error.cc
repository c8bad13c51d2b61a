#include "daemon/schedule/prediction_error.h"

#include <algorithm>

namespace jitc::schedule {

void PredictionError::record(std::uint64_t predicted_bytes, std::uint64_t measured_bytes) {
  if (measured_bytes == 0) return;
  ratios_[recorded_++ % kKept] = static_cast<float>(predicted_bytes) / static_cast<float>(measured_bytes);
}

std::optional<double> PredictionError::quantile(double part) const {
  const std::size_t count = std::min(recorded_, kKept);
  if (count == 0) return std::nullopt;
  std::array<float, kKept> sorted = ratios_;
  const double wanted = std::clamp(part, 0.0, 1.0) * static_cast<double>(count);
  const std::size_t place = std::min(count - 1, static_cast<std::size_t>(wanted));
  std::nth_element(sorted.begin(), sorted.begin() + place, sorted.begin() + count);
  return sorted[place];
}

}  // namespace jitc::schedule
