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
    {"flight":12,"key":"12abff","name":"b.c","phase":"queued","place":2,"waiters":1,"waiting_seconds":4.5},
    {"flight":1234,"key":"0012cd","name":"c.c","phase":"queued","place":1}]})");
}

TEST(JobsTable, HasALineForEach) {
  EXPECT_EQ(jobs_table(some_jobs(), true),
            "FLIGHT   KEY          PHASE           SECONDS     MEMORY  WAITING  NAME\n"
            "7        12ab00       running             1.2     17 KiB        3  a.c\n"
            "12       12abff       queued 2            4.5      0 KiB        1  b.c\n"
            "1234     0012cd       queued 1            0.0      0 KiB        0  c.c\n");
}

TEST(FindJob, TakesTheNumberOfAFlightOrTheFirstDigitsOfAKey) {
  EXPECT_EQ(find_job(some_jobs(), "7", true)->name, "a.c");
  EXPECT_EQ(find_job(some_jobs(), "12", true)->name, "b.c") << "a flight, though keys begin so";
  EXPECT_EQ(find_job(some_jobs(), "12abf", true)->name, "b.c");
  EXPECT_EQ(find_job(some_jobs(), "0012", true)->name, "c.c");
  EXPECT_EQ(find_job(some_jobs(), "12ABF", true)->name, "b.c") << "as others write the digits";
  EXPECT_EQ(description(*find_job(some_jobs(), "7", true), true), "flight 7, a.c (running, 3 waiting)");
}

TEST(FindJob, SaysWhatIsWrongWithTheId) {
  for (const char* id : {"8", "12a", "ffff", "", "-7", "7x"}) {
    const auto none = find_job(some_jobs(), id, true);
    ASSERT_FALSE(none) << id;
    EXPECT_EQ(none.error().kind, common::ErrorKind::kUsage);
    EXPECT_THAT(none.error().remedy, HasSubstr("jitc jobs"));
  }
  const auto several = find_job(some_jobs(), "12ab", true);
  ASSERT_FALSE(several);
  EXPECT_THAT(several.error().message, HasSubstr("a.c"));
  EXPECT_THAT(several.error().message, HasSubstr("b.c"));
}

// A name is what somebody called a file: no escape sequence of theirs reaches the terminal.
TEST(JobsText, IsPrintableWhateverTheNames) {
  const std::vector<JobInfo> jobs = {{.flight = 1, .key = "abcd1", .name = "\x1b[2Ja\nb", .phase = "running"},
                                     {.flight = 2, .key = "abcd2", .name = "gr\xc3\xb6\xc3\x9f.c", .phase = "queued"}};
  const auto several = find_job(jobs, "abcd", true);
  ASSERT_FALSE(several);
  for (const std::string& text : {jobs_table(jobs, true), description(jobs[0], true), several.error().message}) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
    EXPECT_THAT(text, HasSubstr("?[2Ja?b"));
  }
  EXPECT_THAT(jobs_table(jobs, true), HasSubstr("gr\xc3\xb6\xc3\x9f.c"));
  EXPECT_EQ(jobs_table(jobs, false).find('\xc3'), std::string::npos);
}

TEST(JobsText, HasAnObjectForWhatWasCancelledOrWhyNot) {
  const std::vector<JobInfo> jobs = {
      {.flight = 7, .key = "12ab", .name = "gr\xf6.c", .phase = "running", .waiters = 3}};
  EXPECT_EQ(cancelled_json("12ab", jobs[0]),
            "{\"id\":\"12ab\",\"flight\":7,\"key\":\"12ab\",\"name\":\"gr\xEF\xBF\xBD.c\",\"phase\":\"running\","
            "\"waiters\":3}")
      << "a name need not be UTF-8";
  const std::string none = cancelled_json("8", find_job(jobs, "8", true));
  EXPECT_THAT(none, HasSubstr(R"({"id":"8","error":{)"));
  EXPECT_THAT(none, HasSubstr(R"("kind":"USAGE")"));
  EXPECT_EQ(none.find('\n'), std::string::npos);
}

TEST(JobsText, HasAnObjectForADrain) {
  EXPECT_EQ(daemon_json("drained", "/run/j", 12), R"({"state":"drained","runtime_dir":"/run/j","pid":12})");
  EXPECT_EQ(daemon_json("not running", "/run/j", 0), R"({"state":"not running","runtime_dir":"/run/j"})");
}

TEST(IsDraining, IsWhatTheDaemonSays) {
  EXPECT_TRUE(is_draining(R"({"jobs":[],"draining":true})"));
  EXPECT_FALSE(is_draining(R"({"jobs":[],"draining":false})"));
  EXPECT_FALSE(is_draining(R"({"jobs":[]})")) << "of an older daemon";
}

}  // namespace
}  // namespace jitc::cli
