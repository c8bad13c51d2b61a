#include "common/error.h"

#include <gtest/gtest.h>

#include <set>

namespace jitc::common {
namespace {

Error sample() {
  Error error = fail(ErrorKind::kOutOfMemory, "it took too much", "stokes.c", "raise the budget").error();
  error.diagnostics = {{"error", 3, 7, "use of undeclared identifier 'q'", "  out[0] = q;\n           ^"}};
  error.log = "a log with \xc3\x28 in it";
  error.needed_bytes = std::uint64_t{5} << 40;
  error.budget_bytes = 7;
  error.tries = 2;
  error.rungs = {"tried alone"};
  error.retry_after_seconds = 7;
  error.capsule = "/run/jitc/capsules/1.json";
  return error;
}

TEST(Error, SurvivesTheTripToOtherRanks) {
  const Error error = sample();
  const Error back = error_from_json(to_json(error));
  EXPECT_EQ(back.kind, error.kind);
  EXPECT_EQ(back.message, error.message);
  EXPECT_EQ(back.diagnostics, error.diagnostics);
  EXPECT_EQ(back.needed_bytes, error.needed_bytes);
  EXPECT_EQ(back.tries, error.tries);
  EXPECT_EQ(back.rungs, error.rungs);
  EXPECT_EQ(back.retry_after_seconds, error.retry_after_seconds);
  EXPECT_EQ(back.capsule, error.capsule);
}

TEST(Error, UnreadableTextBecomesAnInternalError) {
  for (const char* text : {"", "{", "[1]", "\"x\""}) {
    const Error error = error_from_json(text);
    EXPECT_EQ(error.kind, ErrorKind::kInternal);
    EXPECT_FALSE(error.message.empty());
  }
}

TEST(Error, NamesAreDistinctAndExitCodesAsDocumented) {
  std::set<std::string_view> names;
  for (int kind = 1; kind <= static_cast<int>(ErrorKind::kMiscompiled); ++kind)
    names.insert(name_of(static_cast<ErrorKind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorKind::kMiscompiled));
  EXPECT_EQ(exit_code(ErrorKind::kInvalidSource), 1);
  EXPECT_EQ(exit_code(ErrorKind::kUsage), 2);
  EXPECT_EQ(exit_code(ErrorKind::kUnreachable), 3);
  EXPECT_EQ(exit_code(ErrorKind::kDraining), 3);
  EXPECT_EQ(exit_code(ErrorKind::kVersionSkew), 3);
  EXPECT_EQ(exit_code(ErrorKind::kRefused), 4);
  EXPECT_EQ(exit_code(ErrorKind::kOutOfMemory), 5);
  EXPECT_EQ(exit_code(ErrorKind::kTimedOut), 6);
  EXPECT_EQ(exit_code(ErrorKind::kStoreFull), 7);
  EXPECT_EQ(exit_code(ErrorKind::kCompilerCrashed), 8);
  EXPECT_EQ(exit_code(ErrorKind::kMiscompiled), 8);
  EXPECT_EQ(exit_code(ErrorKind::kCancelled), 9);
  EXPECT_EQ(exit_code(ErrorKind::kInternal), 70);
}

TEST(Error, TextNamesFileLineAndColumn) {
  const std::string text = to_text(sample(), "stokes.c");
  EXPECT_NE(text.find("stokes.c:3:7: error: use of undeclared identifier 'q'"), std::string::npos) << text;
  EXPECT_NE(text.find("OUT_OF_MEMORY: stokes.c: it took too much (raise the budget)"), std::string::npos) << text;
}

}  // namespace
}  // namespace jitc::common
