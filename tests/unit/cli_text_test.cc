// What the command shows: progress, JSON, status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/outcome.h"
#include "client/cli/progress.h"
#include "client/cli/status_text.h"
#include "client/cli/terminal_text.h"

namespace jitc::cli {
namespace {

using ::testing::HasSubstr;
using Phase = rpc::Progress::Phase;

TEST(BytesText, HasTheUnitThatFits) {
  EXPECT_EQ(bytes_text(0), "0 KiB");
  EXPECT_EQ(bytes_text(17'000), "17 KiB");
  EXPECT_EQ(bytes_text(340ull << 20), "340 MiB");
  EXPECT_EQ(bytes_text(1331ull << 20), "1.3 GiB");
}

TEST(DurationText, HasTheTwoLargestUnits) {
  EXPECT_EQ(duration_text(7.9), "7 s");
  EXPECT_EQ(duration_text(61), "1 min 1 s");
  EXPECT_EQ(duration_text(2 * 3600 + 5 * 60), "2 h 5 min");
  EXPECT_EQ(duration_text(3 * 86400 + 4 * 3600), "3 d 4 h");
}

TEST(ProgressLine, SaysPhasePlaceSecondsMemory) {
  EXPECT_EQ(progress_line("f.c", {.phase = Phase::kConnecting, .seconds = 3.7}), "f.c: connecting, 3 s");
  EXPECT_EQ(progress_line("f.c", {.phase = Phase::kQueued, .place = 3, .seconds = 12}), "f.c: queued, place 3, 12 s");
  EXPECT_EQ(progress_line("f.c", {.phase = Phase::kReconnecting, .seconds = 12}), "f.c: reconnecting, 12 s");
  EXPECT_EQ(progress_line("f.c", {.phase = Phase::kElsewhere, .seconds = 12}), "f.c: another node compiles it, 12 s");
  EXPECT_EQ(progress_line("f.c", {.phase = Phase::kCompiling, .seconds = 12, .memory_bytes = 340 << 20}),
            "f.c: compiling, 12 s, 340 MiB");
}

TEST(ProgressBoard, OfOneRequestIsItsLine) {
  ProgressBoard board({"f.c"});
  board.update(0, {.phase = Phase::kQueued, .place = 2, .seconds = 1});
  EXPECT_EQ(board.line(), "f.c: queued, place 2, 1 s");
}

TEST(ProgressBoard, OfSeveralCountsThem) {
  ProgressBoard board({"a.c", "b.c", "c.c", "d.c"});
  board.update(0, {.phase = Phase::kCompiling, .seconds = 4, .memory_bytes = 100 << 20});
  board.update(1, {.phase = Phase::kCompiling, .seconds = 5, .memory_bytes = 50 << 20});
  board.update(2, {.phase = Phase::kQueued, .place = 1, .seconds = 5});
  EXPECT_EQ(board.line(), "0 of 4 done, 2 compiling, 2 queued, 5 s, 150 MiB");
  board.done(0);
  EXPECT_EQ(board.line(), "1 of 4 done, 1 compiling, 2 queued, 5 s, 50 MiB");
}

TEST(OutcomeJson, OfAnArtifact) {
  const Outcome outcome{.name = "f.c",
                        .key = "ab",
                        .path = "/s/ab.so",
                        .hit = true,
                        .seconds = 0.5,
                        .peak_bytes = 5'000'000'000,
                        .warnings = {"w"}};
  EXPECT_EQ(to_json(outcome), R"({"name":"f.c","key":"ab","path":"/s/ab.so","hit":true,"merged":false,"seconds":0.5,)"
                              R"("peak_bytes":5000000000,"warnings":["w"]})");
}

TEST(OutcomeJson, SaysWhatWasTried) {
  const std::string json = to_json(Outcome{.name = "f.c", .degraded = true, .rungs = {"again alone"}});
  EXPECT_THAT(json, HasSubstr(R"("rungs":["again alone"],"degraded":true})"));
}

TEST(OutcomeJson, OfAnErrorIsOneLineWithItsKindAndPlace) {
  common::Error error;
  error.kind = common::ErrorKind::kInvalidSource;
  error.message = "two\nlines";
  error.diagnostics.push_back({"error", 3, 7, "expected ';'", ""});
  const std::string json = to_json(Outcome{.name = "na\xffme.c", .error = error});
  EXPECT_THAT(json, HasSubstr(R"("kind":"INVALID_SOURCE")"));
  EXPECT_THAT(json, HasSubstr(R"("line":3)"));
  EXPECT_THAT(json, HasSubstr(R"("column":7)"));
  EXPECT_EQ(json.find('\n'), std::string::npos);
  EXPECT_EQ(json.find("\"path\""), std::string::npos);
}

TEST(StatusText, NamesDaemonStoreCompilersMemoryAndJobs) {
  const std::string text = status_text(
      R"({"pid":42,"version":"0.1.0","store":"/s","max_compilers":4,"memory_budget_bytes":1073741824,"enforcement":"control groups v2 below /g",
                      "compilers":[{"name":"clang"},{"name":"gcc"}]})",
      R"({"jobs":[{"flight":7,"phase":"running","name":"f.c","elapsed_seconds":2.5,"memory_bytes":104857600},
                              {"flight":8,"phase":"queued","place":1,"name":"g.c"}]})",
      R"({"requests":10,"hits":6,"merged":2,"compiles_started":2,"memory_reserved_bytes":209715200})", 3700, true);
  EXPECT_THAT(text, HasSubstr("pid 42, version 0.1.0, up 1 h 1 min"));
  EXPECT_THAT(text, HasSubstr("/s\n"));
  EXPECT_THAT(text, HasSubstr("clang, gcc; 1 of 4 running, 1 queued"));
  EXPECT_THAT(text, HasSubstr("200 MiB of 1.0 GiB reserved"));
  EXPECT_THAT(text, HasSubstr("kept by control groups v2 below /g\n"));
  EXPECT_THAT(text, HasSubstr("10: 6 hits, 2 merged, 2 compiles started, 0 failed"));
  EXPECT_THAT(text, HasSubstr("f.c\n"));
  EXPECT_THAT(text, HasSubstr("queued 1"));
}

TEST(StatusText, SaysWhatBoundsAndWhereItCameFrom) {
  const std::string text = status_text(
      R"({"limits":[{"bounds":"slots","value":2,"unit":"compiles","source":"/proc/self/status","note":"affinity: 0-1",
                     "binding":true},
                    {"bounds":"budget","value":1073741824,"unit":"bytes","source":"JITC_MEMORY_BUDGET","note":"",
                     "binding":false},
                    {"bounds":"pressure","value":0.25,"unit":"percent","source":"/p","binding":false}]})",
      "{}", "{}", -1, true);
  EXPECT_THAT(text, HasSubstr("* slots         2 compiles  /proc/self/status (affinity: 0-1)\n"));
  EXPECT_THAT(text, HasSubstr("  budget           1.0 GiB  JITC_MEMORY_BUDGET\n"));
  EXPECT_THAT(text, HasSubstr("  pressure           0.2 %  /p\n"));
}

TEST(StatusText, ALongNameKeepsItsLine) {
  const std::string name = std::string(2000, 'x') + ".c";
  const std::string text =
      status_text("{}", R"({"jobs":[{"phase":"running","name":")" + name + R"("},{"phase":"queued","name":"next"}]})",
                  "{}", -1, true);
  EXPECT_THAT(text, HasSubstr(name + "\n"));
  EXPECT_THAT(text, HasSubstr("next\n"));
}

TEST(StatusText, JobsComeLastTellHowLongTheyWaitAndAreNotWithoutEnd) {
  std::string jobs;
  for (int i = 0; i < 500; ++i)
    jobs += std::string(jobs.empty() ? "" : ",") + R"({"phase":"queued","waiting_seconds":7.25,"name":"n)" +
            std::to_string(i) + R"("})";
  const std::string text = status_text(R"({"limits":[{"bounds":"slots","value":2,"unit":"compiles","source":"here"}]})",
                                       R"({"jobs":[)" + jobs + "]}", "{}", -1, true);
  EXPECT_LT(text.find("here"), text.find("n0\n"));
  EXPECT_THAT(text, HasSubstr("7.2 s"));
  EXPECT_THAT(text, HasSubstr("n19\n  ... 480 more: 'jitc jobs' lists all\n"));
  EXPECT_THAT(text, HasSubstr("500 queued"));
}

TEST(StatusText, SaysThatItDrains) {
  EXPECT_THAT(status_text(R"({"draining":true})", "{}", "{}", -1, true), HasSubstr("draining"));
  EXPECT_EQ(status_text("{}", "{}", "{}", -1, true).find("draining"), std::string::npos);
}

TEST(PrintableLines, KeepsLinesAndTabsAndNoOtherControl) {
  EXPECT_EQ(printable_lines("a\tb\n\x1b[31mc\r\xff\n", true), "a\tb\n?[31mc??\n");
  EXPECT_EQ(printable_lines("", true), "");
}

TEST(StatusText, UnknownUptimeIsLeftOut) {
  EXPECT_EQ(status_text("{}", "{}", "{}", -1, true).find(", up "), std::string::npos);
}

}  // namespace
}  // namespace jitc::cli
