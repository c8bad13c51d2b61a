// What one daemon saw a compiler take, the next one on the same store knows.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "tests/support/daemon_fixture.h"

namespace jitc::testing {
namespace {

constexpr const char* kCompiler = JITC_BIN_DIR "/jitc-fakecc";
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

StartOptions options_in(const std::string& directory) {
  return {.arguments = {"--memory-budget", "1G"},
          .environment = {std::string("JITC_COMPILERS=") + kCompiler},
          .worker = JITC_BIN_DIR "/jitc-worker",
          .directory = directory};
}

// Takes 300 MiB, which no text of this size would.
v1::CompileRequest hungry(const std::string& name) {
  auto request = request_for("// fakecc: allocate 300M\ndouble " + name + "(double x) { return x; }\n");
  request.set_compiler(kCompiler);
  return request;
}

v1::StatsReply stats_of(const TestDaemon& daemon) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  v1::StatsReply reply;
  EXPECT_TRUE(daemon.stub()->Stats(&context, {}, &reply).ok());
  return reply;
}

// Reading the store does not hold the daemon up: asked until it has.
std::uint64_t recalled_by(const TestDaemon& daemon) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (std::chrono::steady_clock::now() < end) {
    if (const auto peaks = stats_of(daemon).counters().at("peaks_recalled"); peaks > 0) return peaks;
  }
  return 0;
}

TEST(Prediction, ANewDaemonIsAsWiseAsItsStore) {
  const TemporaryDirectory directory;
  {
    const TestDaemon first(options_in(directory.path()));
    EXPECT_TRUE(stats_of(first).gauges().empty());
    const auto made = compile(*first.stub(), hungry("a"));
    ASSERT_TRUE(made.finished().has_artifact()) << made.failure().message();
    EXPECT_EQ(made.artifact().rungs_size(), 1);  // its limit was too small: again, alone, with more
    EXPECT_LT(stats_of(first).gauges().at("prediction_ratio_p50"), 1);
  }
  const TestDaemon second(options_in(directory.path()));
  EXPECT_EQ(recalled_by(second), 1u);
  const auto made = compile(*second.stub(), hungry("b"));
  ASSERT_TRUE(made.finished().has_artifact()) << made.failure().message();
  EXPECT_EQ(made.artifact().rungs_size(), 0);
  EXPECT_GE(made.artifact().peak_bytes(), 300 * kMiB);
  EXPECT_EQ(stats_of(second).counters().at("retries"), 0u);
  EXPECT_NEAR(stats_of(second).gauges().at("prediction_ratio_p50"), 1, 0.3);
  EXPECT_EQ(stats_of(second).gauges().size(), 3u);
}

}  // namespace
}  // namespace jitc::testing
