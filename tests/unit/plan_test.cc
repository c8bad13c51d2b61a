#include "common/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "common/files.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using ::testing::HasSubstr;

Request request_named(const std::string& name) {
  Request request;
  request.name = name;
  request.origin = "int " + name + "(void) { return \"\\\n\"[0]; }\n";
  request.flags = {"-O2", "-DX=\"y z\""};
  request.headers = {{"a/b.h", "#define B 1\n"}};
  request.abi_tag = "petsc 3.18";
  return request;
}

std::string line_of(const std::string& name) { return *plan_line(request_named(name)); }

class PlanFile : public ::testing::Test {
 protected:
  std::string text() const { return read_file(path_).value_or(""); }
  void write(const std::string& text) const { std::ofstream(path_, std::ios::binary) << text; }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    const auto plan = plan_from_text(text(), path_);
    EXPECT_TRUE(plan) << to_line(plan.error());
    if (plan)
      for (const Request& request : plan->requests) all.push_back(request.name);
    return all;
  }
  // As a run does it.
  static void record(PlanRecorder& plan, const std::string& name) {
    const auto lacks = plan.lacks(request_digest(request_named(name)));
    ASSERT_TRUE(lacks) << to_line(lacks.error());
    if (!*lacks) return;
    const auto added = plan.add(request_named(name));
    EXPECT_TRUE(added) << to_line(added.error());
  }

  testing::TemporaryDirectory directory_;
  const std::string path_ = directory_.path() + "/plan";
};

TEST(Plan, HasAllThatMakesTheKeyButTheLevel) {
  Request request = request_named("f");
  request.code = "int f(void);\n";
  request.compiler = "gcc";
  request.share = "0";
  request.cse = "1";
  request.emitter_version = 3;
  request.isa_wish = "x86-64-v3";
  request.exact_flags = true;
  Request elsewhere = request;
  elsewhere.isa_level = "x86-64-v2";
  const auto plan = plan_from_text(*plan_line(elsewhere), "plan");
  ASSERT_TRUE(plan) << to_line(plan.error());
  ASSERT_EQ(plan->requests.size(), 1U);
  EXPECT_EQ(plan->requests.front(), request);
}

TEST(Plan, EachRequestCountsOnce) {
  const auto plan = plan_from_text(line_of("a") + "\n" + line_of("b") + line_of("a"), "plan");
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->requests, (std::vector{request_named("a"), request_named("b")}));
  EXPECT_TRUE(plan->cut_lines.empty());
  EXPECT_TRUE(plan_from_text("", "plan")->requests.empty());
}

TEST(Plan, LinesThatAreCutShortAreLeftOutByTheirNumbers) {
  const std::string first = line_of("a"), last = line_of("b");
  for (std::size_t size = 1; size + 1 < last.size(); ++size) {
    const auto plan = plan_from_text(first + last.substr(0, size), "plan");
    ASSERT_TRUE(plan) << size << ": " << to_line(plan.error());
    EXPECT_EQ(plan->requests.size(), 1U);
    EXPECT_EQ(plan->cut_lines, std::vector<std::size_t>{2}) << size;
  }
  EXPECT_EQ(plan_from_text(first + last.substr(0, last.size() - 1), "plan")->requests.size(), 2U);
  EXPECT_EQ(plan_from_text(last.substr(0, 20) + "\n" + first, "plan")->cut_lines, std::vector<std::size_t>{1});
}

TEST(Plan, WhatWasNotRecordedSoIsRefusedWithItsPlace) {
  const auto refused = [](std::string line, const std::string& from, const std::string& to, ErrorKind kind) {
    const auto at = line.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const auto plan = plan_from_text(line_of("a") + line.replace(at, from.size(), to), "plan");
    ASSERT_FALSE(plan) << to;
    EXPECT_EQ(plan.error().kind, kind) << to;
    EXPECT_EQ(plan.error().thing, "plan:2");
    EXPECT_FALSE(plan.error().remedy.empty());
  };
  refused(line_of("b"), "-O2", "-O3", ErrorKind::kUsage);
  refused(line_of("b"), "\"version\":1", "\"version\":2", ErrorKind::kVersionSkew);
  refused(line_of("b"), "\"version\":1", "\"version\":\"1\"", ErrorKind::kUsage);
  refused(line_of("b"), "jitc plan", "jitc capsule", ErrorKind::kUsage);
  refused(line_of("b"), "\"request\":{", "\"asked\":{", ErrorKind::kUsage);
  refused(line_of("b"), "\"flags\":[\"-O2\"", "\"flags\":[2", ErrorKind::kUsage);
}

TEST(Plan, ATextThatIsNotUtf8CannotBeInOne) {
  Request request = request_named("f");
  request.origin += "// \xff\n";
  const auto line = plan_line(request);
  ASSERT_FALSE(line);
  EXPECT_EQ(line.error().kind, ErrorKind::kUsage);
}

TEST_F(PlanFile, IsOnesOwnAndGrowsByWhatIsNew) {
  {
    PlanRecorder plan(path_);
    record(plan, "a");
    record(plan, "b");
    record(plan, "a");
  }
  struct stat status{};
  ASSERT_EQ(::stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  EXPECT_EQ(text(), line_of("a") + line_of("b"));
  PlanRecorder next(path_), other(path_);
  record(next, "b");
  record(next, "c");
  record(other, "c");
  EXPECT_EQ(text(), line_of("a") + line_of("b") + line_of("c"));
}

TEST_F(PlanFile, ManyMayAddToOne) {
  constexpr int kWriters = 8, kEach = 50;
  {
    std::vector<std::jthread> writers;
    for (int writer = 0; writer < kWriters; ++writer)
      writers.emplace_back([this, writer] {
        PlanRecorder plan(path_);
        for (int i = 0; i < kEach; ++i) record(plan, "f" + std::to_string(writer) + "_" + std::to_string(i));
      });
  }
  const auto plan = plan_from_text(text(), path_);
  ASSERT_TRUE(plan) << to_line(plan.error());
  EXPECT_TRUE(plan->cut_lines.empty());
  EXPECT_EQ(plan->requests.size(), static_cast<std::size_t>(kWriters * kEach));
}

// A writer was stopped in the middle: the next line begins anew.
TEST_F(PlanFile, ALineWithoutAnEndSpoilsNoOther) {
  write(line_of("a") + line_of("b").substr(0, 100));
  PlanRecorder plan(path_);
  record(plan, "b");
  record(plan, "c");
  EXPECT_EQ(names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(plan_from_text(text(), path_)->cut_lines, std::vector<std::size_t>{2});
}

TEST_F(PlanFile, WhatIsNoRegularFileIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const auto into_fifo = PlanRecorder(path_).lacks(Digest{});
  ASSERT_FALSE(into_fifo);
  EXPECT_EQ(into_fifo.error().kind, ErrorKind::kUsage);
  const auto nowhere = PlanRecorder(directory_.path() + "/none/plan").lacks(Digest{});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().remedy, HasSubstr("JITC_RECORD"));
}

}  // namespace
}  // namespace jitc::common
