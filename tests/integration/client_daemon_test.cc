// libjitc with a real daemon, whose compiles end as the source says: what the C interface asks for reaches the
// compiler.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <jitc/jitc.hpp>
#include <optional>

#include "tests/support/daemon_fixture.h"

namespace jitc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::optional<Error> error_of(Context& context, const Request& request) {
  try {
    context.compile(request);
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// At -O0 the source runs out of memory, at -O1 it does not; what the stand-in makes of it cannot be loaded.
TEST(ClientDaemon, ExactFlagsAreNeverServedAtAnotherLevel) {
  testing::TestDaemon daemon;
  Context context(Options{{{"runtime_dir", daemon.runtime_dir()}, {"store", daemon.store()}, {"timeout", "60"}}, {}});
  Request request;
  request.source = "//! memory unless -O1\n";
  request.flags = {"-O0"};
  request.exact_flags = true;
  const auto exact = error_of(context, request);
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->kind, JITC_OUT_OF_MEMORY) << exact->what();
  EXPECT_THAT(exact->json, Not(HasSubstr("-O1 instead of -O0")));
  EXPECT_EQ(daemon.stats().at("degraded"), 0u);

  request.exact_flags = false;
  const auto lowered = error_of(context, request);
  ASSERT_TRUE(lowered);
  EXPECT_EQ(lowered->kind, JITC_NOT_LOADED) << lowered->what();
  EXPECT_EQ(daemon.stats().at("degraded"), 1u);
}

}  // namespace
}  // namespace jitc
