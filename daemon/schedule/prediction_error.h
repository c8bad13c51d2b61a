// How good predictions of memory were lately: predicted / measured of the last first tries.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace jitc::schedule {

class PredictionError {
 public:
  static constexpr std::size_t kKept = 1024;
  void record(std::uint64_t predicted_bytes, std::uint64_t measured_bytes);  // 0 measured: ignored
  // The ratio that this part of the records (0 to 1) does not exceed; nothing without records.
  std::optional<double> quantile(double part) const;

 private:
  std::array<float, kKept> ratios_{};  // a ring
  std::size_t recorded_ = 0;
};

}  // namespace jitc::schedule
