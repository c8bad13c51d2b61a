// JITC_RECORD: what a run asks for is in the plan, once, and with the text that only the run can print.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <jitc/jitc.hpp>
#include <string>
#include <vector>

#include "common/files.h"
#include "common/plan.h"
#include "common/request.h"
#include "tests/integration/client_fixture.h"

namespace jitc {
namespace {

using testing::Client;
using testing::FakeDaemon;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// No other test of this program has it in memory.
constexpr const char* kText = "double answer(double r);\n";

class ClientRecord : public Client {
 protected:
  std::string file() const { return runtime_dir() + "/plan"; }
  std::vector<common::Request> recorded() const {
    const auto plan = common::plan_from_text(common::read_file(file()).value_or(""), file());
    EXPECT_TRUE(plan) << common::to_line(plan.error());
    return plan ? plan->requests : std::vector<common::Request>();
  }
};

TEST_F(ClientRecord, TextsAndProblemsAreRecordedOnce) {
  FakeDaemon daemon(socket(), script());
  Problem problem("constant", 2);
  const Field u = problem.field("u", 1);
  problem.residual("f0", JITC_F0, u, {u(0) * problem.constant("rho", 1.5)});
  for (int run = 0; run < 2; ++run) {
    Context context(options({{"record", file()}}));
    for (int call = 0; call < 2; ++call) {
      context.compile(request(kText));
      context.compile(problem);
      context.compile_all({request("double answer(double s);\n"), request(kText)});
    }
  }
  const auto requests = recorded();
  ASSERT_EQ(requests.size(), 3U);
  EXPECT_EQ(requests[0].origin, kText);
  EXPECT_EQ(requests[0].name, "residual.c");
  EXPECT_THAT(requests[0].code, IsEmpty()) << "who builds it shares it";
  EXPECT_EQ(requests[0].isa_wish, "common");
  EXPECT_THAT(requests[0].isa_level, IsEmpty());
  EXPECT_THAT(requests[1].code, HasSubstr("f0")) << "nobody else can print it";
  EXPECT_EQ(requests[2].origin, "double answer(double s);\n");
  const std::string text = *common::read_file(file());
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
}

TEST_F(ClientRecord, WhatCannotBeRecordedFailsNoCompile) {
  FakeDaemon daemon(socket(), script());
  Context context(options({{"record", runtime_dir() + "/none/plan"}}));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(context.compile(request("double answer(double q);\n")).symbol<double(double)>("answer")(2.0), 84.0);
  EXPECT_EQ(context.compile(request("double answer(double t);\n")).symbol<double(double)>("answer")(2.0), 84.0);
  const std::string said = ::testing::internal::GetCapturedStderr();
  const auto at = said.find("not recorded");
  EXPECT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("not recorded", at + 1), std::string::npos) << said;
}

}  // namespace
}  // namespace jitc
