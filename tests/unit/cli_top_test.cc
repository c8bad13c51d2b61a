// What `jitc top` shows, and how others' words are made fit for a terminal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "client/cli/terminal_text.h"
#include "client/cli/top_text.h"

namespace jitc::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TopView busy() {
  constexpr std::uint64_t kMiB = 1 << 20;
  TopView view{.version = "0.1",
               .pid = 42,
               .uptime_seconds = 125,
               .slots = 2,
               .memory_bytes = 256 * kMiB,
               .reserved_bytes = 512 * kMiB,
               .budget_bytes = 1024 * kMiB,
               .peak_bytes = 800 * kMiB,
               .requests = 10,
               .hits = 6,
               .merged = 2,
               .compiles_started = 4,
               .compiles_failed = 1,
               .compiles_per_minute = 12.25};
  view.jobs = {{.flight = 7,
                .phase = "running",
                .attempt = 2,
                .seconds = 75,
                .memory_bytes = 200 * kMiB,
                .limit_bytes = 400 * kMiB,
                .client = "pid:99",
                .name = "/home/me/a/long/path/to/stokes.c"},
               {.flight = 8, .phase = "queued", .place = 1, .seconds = 2.5, .client = "slurm:7", .name = "next.c"}};
  return view;
}

TEST(TopText, ShowsGaugesAndJobs) {
  EXPECT_THAT(
      lines_of(top_text(busy(), {.columns = 90, .rows = 24, .utf8 = false})),
      ElementsAre("jitcd 0.1, pid 42, up 2 min 5 s",
                  "compilers  [##############..............] 1 of 2 running, 1 queued",
                  "memory     [#######=======..............] 256 MiB of 1.0 GiB, 512 MiB reserved, peak 800 ~",
                  "requests   10: 60 % hits, 2 merged, 1 failed; 12 compiles a minute", "",
                  " FLIGHT PHASE           TIME   MEMORY    LIMIT CLIENT       NAME                          ",
                  "      7 running, 2.     1:15  200 MiB  400 MiB pid:99       ~me/me/a/long/path/to/stokes.c",
                  "      8 queued 1       2.5 s        -        - slurm:7      next.c                        "));
}

TEST(TopText, IsNoWiderThanTheScreen) {
  const TopView view = busy();
  for (const bool utf8 : {false, true}) {
    for (std::size_t columns = 1; columns <= 140; ++columns) {
      for (const std::string& line : lines_of(top_text(view, {.columns = columns, .rows = 50, .utf8 = utf8})))
        EXPECT_LE(columns_of(line), columns) << line;
    }
  }
  // A narrow one has fewer columns, and still the names' ends.
  const std::string narrow = top_text(view, {.columns = 40, .rows = 50, .utf8 = false});
  EXPECT_THAT(narrow, Not(HasSubstr("CLIENT")));
  EXPECT_THAT(narrow, HasSubstr("MEMORY"));
  EXPECT_THAT(narrow, HasSubstr("stokes.c"));
}

TEST(TopText, IsNoLongerThanTheScreenAndSaysHowManyAreLeft) {
  TopView view = busy();
  for (std::uint64_t i = 0; i < 100; ++i) view.jobs.push_back({.flight = 100 + i, .phase = "queued", .name = "f.c"});
  const auto lines = lines_of(top_text(view, {.columns = 80, .rows = 24, .utf8 = false}));
  ASSERT_EQ(lines.size(), 24u);
  EXPECT_EQ(lines.back(), "... 85 more");
  // Where just one is left, its row is shown.
  view.jobs.resize(18);
  EXPECT_THAT(lines_of(top_text(view, {.columns = 80, .rows = 24, .utf8 = false})).back(), HasSubstr("f.c"));
  EXPECT_EQ(lines_of(top_text(busy(), {})).size(), 8u);
}

TEST(TopText, NoControlCharacterOfANameReachesTheTerminal) {
  TopView view = busy();
  view.jobs[0].name = "a\033]0;title\007b\xc2\x9b[31m\xe2\x80\xae.c\n\r\t\xff";
  view.jobs[0].client = "x\033[2J";
  for (const bool utf8 : {false, true}) {
    const std::string text = top_text(view, {.columns = 120, .rows = 24, .utf8 = utf8});
    EXPECT_TRUE(std::ranges::none_of(text, [](char c) { return c != '\n' && static_cast<unsigned char>(c) < 0x20; }));
    EXPECT_THAT(text, Not(HasSubstr("\xc2\x9b")));
    EXPECT_THAT(text, Not(HasSubstr("\xe2\x80\xae")));
    EXPECT_THAT(text, HasSubstr("a?]0;title?b?[31m?.c????"));
  }
}

TEST(TopText, WithoutUtf8IsAscii) {
  TopView view = busy();
  view.jobs[0].name = "größe.c";
  const std::string text = top_text(view, {.columns = 100, .rows = 24, .utf8 = false});
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) << text;
  EXPECT_THAT(top_text(view, {.columns = 100, .rows = 24, .utf8 = true}), HasSubstr("größe.c"));
}

TEST(TopText, AttributesAreOnlyWhereAskedFor) {
  const Screen plain{.columns = 80, .rows = 24, .utf8 = true};
  Screen coloured = plain;
  coloured.colours = true;
  EXPECT_THAT(top_text(busy(), plain), Not(HasSubstr("\033")));
  EXPECT_THAT(top_text(busy(), coloured), HasSubstr("\033[7m FLIGHT"));
}

TEST(TopText, SaysThatTheDaemonDrains) {
  const Screen screen{.columns = 100, .rows = 20};
  EXPECT_NE(top_text(top_view(R"({"draining":true})", "{}", "{}"), screen).find(", draining\n"), std::string::npos);
  EXPECT_EQ(top_text(top_view("{}", "{}", "{}"), screen).find("draining"), std::string::npos);
}

TEST(TopView, IsMadeOfTheDaemonsAnswers) {
  const TopView view = top_view(
      R"({"pid":42,"version":"0.1","max_compilers":4,"memory_budget_bytes":1000})",
      R"({"jobs":[{"flight":7,"phase":"running","name":"f.c","job":"me","elapsed_seconds":2.5,"waiting_seconds":9,
                   "memory_bytes":10,"limit_bytes":20,"attempt":1},
                  {"flight":8,"phase":"queued","place":1,"elapsed_seconds":0,"waiting_seconds":3}]})",
      R"({"requests":10,"hits":6,"memory_bytes":100,"memory_reserved_bytes":200,"memory_peak_bytes":300})");
  EXPECT_EQ(view.slots, 4u);
  EXPECT_EQ(view.budget_bytes, 1000u);
  EXPECT_EQ(view.reserved_bytes, 200u);
  ASSERT_EQ(view.jobs.size(), 2u);
  EXPECT_EQ(view.jobs[0].seconds, 2.5);
  EXPECT_EQ(view.jobs[0].limit_bytes, 20u);
  EXPECT_EQ(view.jobs[0].client, "me");
  EXPECT_EQ(view.jobs[1].seconds, 3);
  EXPECT_TRUE(top_view("{}", "{}", "{}").jobs.empty());
}

TEST(CompileRate, IsThatOfTheLastMinute) {
  CompileRate rate;
  EXPECT_EQ(rate.per_minute(10), 0);
  rate.add(0, 30);
  EXPECT_EQ(rate.per_minute(60), 30);  // since the start
  rate.add(10, 35);
  EXPECT_EQ(rate.per_minute(70), 30);  // 5 in 10 s
  for (int second = 20; second <= 100; second += 10) rate.add(second, 35);
  EXPECT_EQ(rate.per_minute(160), 0);  // none in the last minute
  rate.add(110, 0);                    // another daemon
  EXPECT_EQ(rate.per_minute(0), 0);
}

TEST(Fitted, CutsAndFillsByColumns) {
  EXPECT_EQ(fitted("abc", 5, true), "abc  ");
  EXPECT_EQ(fitted("abcdef", 4, true), "abc…");
  EXPECT_EQ(fitted("abcdef", 4, false), "abc~");
  EXPECT_EQ(fitted("abcdef", 4, false, Cut::kFront), "~def");
  EXPECT_EQ(fitted("abc", 0, true), "");
  EXPECT_EQ(fitted("日本語", 4, true), "日… ");  // two columns each
  EXPECT_EQ(fitted("日本語", 4, true, Cut::kFront), "…語 ");
}

TEST(Bar, ShowsUsedReservedAndFree) {
  EXPECT_EQ(bar(12, 0.3, 0.5, false), "[###==.....]");
  EXPECT_EQ(bar(12, 0.3, 0.5, true), "[███▒▒·····]");
  EXPECT_EQ(bar(6, 7, 0, false), "[####]");
  EXPECT_EQ(bar(6, 0, 0, false), "[....]");
  EXPECT_EQ(bar(2, 1, 1, false), "");
}

}  // namespace
}  // namespace jitc::cli
