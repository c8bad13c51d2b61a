#include "daemon/schedule/prediction_error.h"

#include <gtest/gtest.h>

namespace jitc::schedule {
namespace {

TEST(PredictionError, HasNothingToSayAtFirst) {
  PredictionError error;
  error.record(5, 0);
  EXPECT_EQ(error.quantile(0.5), std::nullopt);
}

TEST(PredictionError, GivesQuantilesOfPredictedToMeasured) {
  PredictionError error;
  for (std::uint64_t i = 1; i <= 100; ++i) error.record(i, 100);
  EXPECT_NEAR(error.quantile(0).value(), 0.01, 1e-6);
  EXPECT_NEAR(error.quantile(0.5).value(), 0.51, 1e-6);
  EXPECT_NEAR(error.quantile(0.95).value(), 0.96, 1e-6);
  EXPECT_NEAR(error.quantile(1).value(), 1.0, 1e-6);
}

TEST(PredictionError, ForgetsTheOldest) {
  PredictionError error;
  error.record(100, 1);
  for (std::size_t i = 0; i < PredictionError::kKept; ++i) error.record(1, 1);
  EXPECT_EQ(error.quantile(1), 1.0);
}

}  // namespace
}  // namespace jitc::schedule
