// How `jitc jobs` shows flights and how `jitc cancel` finds the one that is meant.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/jobs_text.h"

namespace jitc::cli {
namespace {

using ::testing::HasSubstr;

std::vector<JobInfo> some_jobs() {
  return jobs_of(R"({"jobs":[
    {"flight":7,"key":"12ab00","name":"a.c","phase":"running","waiters":3,"elapsed_seconds":1.25,"memory_bytes":17000},
    {"flight":12,"key":"12abff","name":"b.c","phase":"queued","place":2,"waiters":1},
    {"flight":1234,"key":"0012cd","name":"c.c","phase":"queued","place":1}]})");
}

TEST(JobsTable, HasALineForEach) {
  EXPECT_EQ(jobs_table(some_jobs()),
            "FLIGHT   KEY          PHASE           SECONDS     MEMORY  WAITING  NAME\n"
            "7        12ab00       running             1.2     17 KiB        3  a.c\n"
            "12       12abff       queued 2            0.0      0 KiB        1  b.c\n"
            "1234     0012cd       queued 1            0.0      0 KiB        0  c.c\n");
}

TEST(FindJob, TakesTheNumberOfAFlightOrTheFirstDigitsOfAKey) {
  EXPECT_EQ(find_job(some_jobs(), "7")->name, "a.c");
  EXPECT_EQ(find_job(some_jobs(), "12")->name, "b.c") << "a flight, though keys begin so";
  EXPECT_EQ(find_job(some_jobs(), "12abf")->name, "b.c");
  EXPECT_EQ(find_job(some_jobs(), "0012")->name, "c.c");
  EXPECT_EQ(description(*find_job(some_jobs(), "7")), "flight 7, a.c (running, 3 waiting)");
}

TEST(FindJob, SaysWhatIsWrongWithTheId) {
  for (const char* id : {"8", "12a", "ffff", "", "-7", "7x"}) {
    const auto none = find_job(some_jobs(), id);
    ASSERT_FALSE(none) << id;
    EXPECT_EQ(none.error().kind, common::ErrorKind::kUsage);
    EXPECT_THAT(none.error().remedy, HasSubstr("jitc jobs"));
  }
  const auto several = find_job(some_jobs(), "12ab");
  ASSERT_FALSE(several);
  EXPECT_THAT(several.error().message, HasSubstr("a.c"));
  EXPECT_THAT(several.error().message, HasSubstr("b.c"));
}

}  // namespace
}  // namespace jitc::cli
