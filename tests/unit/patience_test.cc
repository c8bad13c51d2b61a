#include "client/rpc/patience.h"

#include <gtest/gtest.h>

namespace jitc::rpc {
namespace {

using namespace std::chrono_literals;
using Time = Patience::Time;

const Time kStart = Time() + 1000s;

TEST(Patience, TicksOnceASecond) {
  Patience patience(kStart, 0, 0);
  EXPECT_FALSE(patience.take_tick(kStart + 999ms));
  EXPECT_TRUE(patience.take_tick(kStart + 1000ms));
  EXPECT_FALSE(patience.take_tick(kStart + 1001ms));
  EXPECT_EQ(patience.wake(), kStart + 2000ms);
  EXPECT_TRUE(patience.take_tick(kStart + 2100ms));
}

TEST(Patience, EndsOnSilenceNotOnWork) {
  Patience patience(kStart, 3, 0);
  for (int second = 1; second <= 100; ++second) {
    patience.waited(kStart + second * 1s);
    patience.heard(kStart + second * 1s);
    ASSERT_FALSE(patience.expired(kStart + second * 1s)) << second;
  }
  for (int second = 101; second <= 102; ++second) {
    patience.waited(kStart + second * 1s);
    ASSERT_FALSE(patience.expired(kStart + second * 1s)) << second;
  }
  patience.waited(kStart + 103s);
  const auto error = patience.expired(kStart + 103s);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, common::ErrorKind::kTimedOut);
  EXPECT_NE(error->message.find("3 s"), std::string::npos) << error->message;
}

TEST(Patience, TimeInWhichThisProcessWasStoppedIsNotTheDaemonsSilence) {
  Patience patience(kStart, 30, 0);
  patience.waited(kStart + 1s);
  patience.waited(kStart + 3600s);
  EXPECT_FALSE(patience.expired(kStart + 3600s));
}

TEST(Patience, TotalLimitEndsAlsoAWorkingCall) {
  Patience patience(kStart, 30, 2.5);
  patience.heard(kStart + 2400ms);
  EXPECT_EQ(patience.wake(), kStart + 1s);
  EXPECT_TRUE(patience.take_tick(kStart + 2400ms));
  EXPECT_EQ(patience.wake(), kStart + 2500ms) << "a limit that comes before the tick is the next time to look";
  EXPECT_FALSE(patience.expired(kStart + 2400ms));
  const auto error = patience.expired(kStart + 2500ms);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind, common::ErrorKind::kTimedOut);
  EXPECT_NE(error->message.find("2.5 s"), std::string::npos) << error->message;
}

TEST(Patience, NoLimitsNeverExpire) {
  Patience patience(kStart, 0, -1);
  for (int hour = 1; hour < 100; ++hour) patience.waited(kStart + hour * 1h);
  EXPECT_FALSE(patience.expired(kStart + 100h));
}

}  // namespace
}  // namespace jitc::rpc
