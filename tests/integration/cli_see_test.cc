// What an operator sees of a real daemon: `jitc top`, `status --watch`, `stats`, `trace`, the metrics file.
#include <signal.h>
#include <sys/stat.h>

#include <chrono>
#include <memory>
#include <regex>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/pseudo_terminal.h"

namespace jitc {
namespace {

constexpr std::chrono::seconds kPatience(60);

class CliSeeTest : public testing::CommandTest {
 protected:
  CliSeeTest() {
    environment["JITC_AUTOSTART"] = "";
    environment["JITC_IDLE_EXIT"] = "60s";  // should a test end without its daemon's end
  }
  ~CliSeeTest() override { jitc({"daemon", "stop"}); }

  // A session of its own, so that the terminal is the program's controlling one: it gets its signals.
  std::unique_ptr<Process> on(const testing::PseudoTerminal& terminal, const std::string& words) const {
    auto there = environment;
    there["TERM"] = "xterm";
    there["LC_ALL"] = "C.UTF-8";
    return std::make_unique<Process>(std::vector<std::string>{"/usr/bin/setsid", "--wait", "/bin/sh", "-c",
                                                              "exec " JITC_BIN_DIR "/jitc " + words + " <" +
                                                                  terminal.name() + " >" + terminal.name()},
                                     there);
  }
};

TEST_F(CliSeeTest, TopOnATerminalFollowsItsSizeAndRestoresItAtTheEnd) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  testing::PseudoTerminal terminal;
  if (!terminal) GTEST_SKIP() << "no pseudo-terminals here";
  terminal.resize(90, 20);
  // Its first screen, and what follows once the size is another or q was typed.
  const auto top = on(terminal, "top --interval=3600");
  const std::regex first("1049h[\\s\\S]*compilers  .* 0 of [0-9]+ running[\\s\\S]*FLIGHT[\\s\\S]*\x1b\\[J");
  std::string shown = terminal.wait_for(first, kPatience);
  ASSERT_TRUE(std::regex_search(shown, first)) << shown;
  EXPECT_FALSE(terminal.is_usual());
  EXPECT_NE(shown.find("CLIENT"), std::string::npos);
  terminal.resize(40, 20);
  const std::regex second("\x1b\\[J[\\s\\S]*\x1b\\[J");
  shown = terminal.wait_for(second, kPatience);
  ASSERT_TRUE(std::regex_search(shown, second)) << shown;
  EXPECT_EQ(shown.find("CLIENT", shown.find("\x1b[J")), std::string::npos) << "as wide as before";
  terminal.type("q");
  EXPECT_EQ(top->wait().exit_code, 0);
  EXPECT_TRUE(terminal.is_usual());
  const std::regex end("\x1b\\[\\?25h\x1b\\[\\?1049l");
  EXPECT_TRUE(std::regex_search(terminal.wait_for(end, kPatience), end));
}

TEST_F(CliSeeTest, QEndsTopAlthoughTheDaemonHangs) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = std::stoi(read(runtime + "/" + common::kLockName));
  testing::PseudoTerminal terminal;
  if (!terminal) GTEST_SKIP() << "no pseudo-terminals here";
  terminal.resize(120, 20);
  const auto top = on(terminal, "top --interval=0.1");
  const std::regex first("1049h[\\s\\S]*FLIGHT[\\s\\S]*\x1b\\[J");
  ASSERT_TRUE(std::regex_search(terminal.wait_for(first, kPatience), first));
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  const std::regex hangs("TIMED_OUT[^\r\n]*pid " + std::to_string(pid) + ", does not answer");
  const std::string shown = terminal.wait_for(hangs, kPatience);
  EXPECT_TRUE(std::regex_search(shown, hangs)) << shown;
  terminal.type("q");
  EXPECT_EQ(top->wait().exit_code, 0);
  EXPECT_TRUE(terminal.is_usual());
  EXPECT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(CliSeeTest, CtrlCEndsTopAndStatus) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  for (const char* words : {"top --interval=3600", "status --watch=3600"}) {
    testing::PseudoTerminal terminal;
    if (!terminal) GTEST_SKIP() << "no pseudo-terminals here";
    const auto watching = on(terminal, words);
    const std::regex shown("1049h[\\s\\S]*\x1b\\[J");
    ASSERT_TRUE(std::regex_search(terminal.wait_for(shown, kPatience), shown)) << words;
    terminal.type("\x03");
    EXPECT_EQ(watching->wait().exit_code, 0) << words;
    EXPECT_TRUE(terminal.is_usual()) << words;
  }
}

TEST_F(CliSeeTest, ElsewhereThanOnATerminalTextsFollowEachOther) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const auto once = jitc({"top"});
  EXPECT_EQ(once.exit_code, 0) << once.err;
  EXPECT_THAT(once.out, HasSubstr("requests   0: - hits"));
  EXPECT_EQ(once.out.find('\033'), std::string::npos);
  const std::regex head("jitcd [0-9.]+, pid");
  const std::string twice = jitc({"top", "--interval=0.1", "--count=2"}).out;
  EXPECT_EQ(std::distance(std::sregex_iterator(twice.begin(), twice.end(), head), {}), 2) << twice;
  for (const char* wrong : {"0", "0.01", "3601", "x", "nan"}) {
    const auto top = jitc({"top", std::string("--interval=") + wrong});
    EXPECT_EQ(top.exit_code, 2) << wrong;
    EXPECT_THAT(top.err, HasSubstr("from 0.1 to 3600"));
    EXPECT_EQ(jitc({"status", std::string("--watch=") + wrong}).exit_code, 2);
  }
}

TEST_F(CliSeeTest, WithoutADaemonTheyAreErrors) {
  for (const auto& words : {std::vector<std::string>{"top"}, {"trace"}, {"status", "--watch"}})
    EXPECT_EQ(jitc(words).exit_code, 3) << words.front();
}

TEST_F(CliSeeTest, StatsHaveThreeForms) {
  ASSERT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
  const auto numbers = json::parse(jitc({"stats", "--format=json"}).out);
  EXPECT_EQ(numbers["compiles_started"], 1);
  const auto metrics = testing::read_prometheus(jitc({"stats", "--format=prometheus"}).out);
  EXPECT_EQ(metrics.size(), numbers.size());
  const std::string labels = "{node=\"" + common::host_name() + "\",runtime_dir=\"" + runtime + "\"}";
  ASSERT_TRUE(metrics.contains("jitc_compiles_started_total"));
  EXPECT_EQ(metrics.at("jitc_compiles_started_total").samples.at(labels), 1);
  EXPECT_THAT(jitc({"stats"}).out, HasSubstr("starts of a compiler"));
  EXPECT_EQ(jitc({"stats", "--format=xml"}).exit_code, 2);
}

TEST_F(CliSeeTest, TheMetricsFileIsThereFromTheStartAndHasTheLastCounts) {
  const std::string file = directory.path() + "/jitc.prom";
  environment["JITC_METRICS_FILE"] = file;
  ASSERT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
  ASSERT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  const auto metrics = testing::read_prometheus(read(file));
  ASSERT_TRUE(metrics.contains("jitc_published_total"));
  EXPECT_EQ(metrics.at("jitc_published_total").samples.begin()->second, 1);
  struct stat status{};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0644U);
}

TEST_F(CliSeeTest, AMetricsFileThatCannotBeWrittenIsOneWarning) {
  environment["JITC_METRICS_FILE"] = directory.path() + "/none/jitc.prom";
  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  ASSERT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  const std::string log = read(runtime + "/jitcd.log");
  const std::regex warning("metrics file not written");
  EXPECT_EQ(std::distance(std::sregex_iterator(log.begin(), log.end(), warning), {}), 1) << log;
}

TEST_F(CliSeeTest, TraceIsJsonOrAPicture) {
  ASSERT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
  const auto compiles_in = [](const std::string& trace) {
    std::size_t compiles = 0;
    const auto parsed = json::parse(trace);
    for (const auto& event : parsed["traceEvents"]) compiles += event["ph"] == "X";
    return compiles;
  };
  EXPECT_EQ(compiles_in(jitc({"trace"}).out), 1u);
  const std::string picture = directory.path() + "/t.svg", same = directory.path() + "/u.svg",
                    events = directory.path() + "/t.json";
  ASSERT_EQ(jitc({"trace", "--svg", picture, "-o", events}).exit_code, 0);
  ASSERT_EQ(jitc({"trace", "-o", same}).exit_code, 0);
  for (const std::string& file : {picture, same}) {
    EXPECT_TRUE(read(file).starts_with("<svg ")) << file;
    EXPECT_THAT(read(file), HasSubstr("f.c\ncompiled, after"));
  }
  EXPECT_EQ(compiles_in(read(events)), 1u);
  EXPECT_EQ(compiles_in(jitc({"trace", "-o", "-"}).out), 1u);
  EXPECT_TRUE(jitc({"trace", "--svg", "-"}).out.starts_with("<svg "));
  EXPECT_FALSE(fs::exists("-"));
}

TEST_F(CliSeeTest, StatusIsAlsoJson) {
  ASSERT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
  const auto status = json::parse(jitc({"status", "--json"}).out);
  EXPECT_EQ(status["daemon"]["pid"], std::stoi(read(runtime + "/" + common::kLockName)));
  EXPECT_EQ(status["daemon"]["draining"], false);
  EXPECT_GE(status["daemon"]["uptime_seconds"], 0);
  EXPECT_EQ(status["stats"]["compiles_started"], 1);
  EXPECT_EQ(status["jobs"], json::array());
  EXPECT_EQ(status["socket"], socket);
  EXPECT_EQ(jitc({"status", "--json", "--watch"}).exit_code, 2);
}

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) lines.push_back(json::parse(line, nullptr, false));
  return lines;
}

TEST_F(CliSeeTest, TopIsAlsoAnObjectForEachLook) {
  ASSERT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
  EXPECT_EQ(lines_of(jitc({"top", "--json"}).out).size(), 1u);
  const auto looks = lines_of(jitc({"top", "--json", "--interval=0.1", "--count=3"}).out);
  ASSERT_EQ(looks.size(), 3u) << "a line each, and none between them";
  for (const auto& look : looks) {
    ASSERT_TRUE(look.is_object());
    EXPECT_EQ(look["daemon"]["pid"], std::stoi(read(runtime + "/" + common::kLockName)));
    EXPECT_EQ(look["stats"]["compiles_started"], 1);
    EXPECT_EQ(look["jobs"], json::array());
  }
  EXPECT_GT(looks[0]["compiles_per_minute"], 0);
  EXPECT_EQ(looks[2]["compiles_per_minute"], 0) << "none since the first look";
}

TEST_F(CliSeeTest, OnATerminalJsonIsLinesToo) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  testing::PseudoTerminal terminal;
  if (!terminal) GTEST_SKIP() << "no pseudo-terminals here";
  const auto top = on(terminal, "top --json --interval=0.1");
  const std::regex two("^\\{[^\r\n]*\\}\r\n\\{[^\r\n]*\\}\r\n");
  const std::string shown = terminal.wait_for(two, kPatience);
  EXPECT_TRUE(std::regex_search(shown, two)) << shown;
  terminal.type("\x03");
  EXPECT_EQ(top->wait().exit_code, 0);
}

TEST_F(CliSeeTest, CancelAndDrainSpeakJson) {
  const auto none = jitc({"drain", "--json"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_EQ(json::parse(none.out), (json{{"state", "not running"}, {"runtime_dir", runtime}}));
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = std::stoi(read(runtime + "/" + common::kLockName));
  const auto cancelled = jitc({"cancel", "--json", "4711", "4712"});
  EXPECT_EQ(cancelled.exit_code, 2) << cancelled.err;
  const auto why = lines_of(cancelled.out);
  ASSERT_EQ(why.size(), 2u) << "each ID has its own line";
  EXPECT_EQ(why[1]["id"], "4712");
  EXPECT_EQ(why[1]["error"]["kind"], "USAGE");
  const auto drained = jitc({"drain", "--json"});
  EXPECT_EQ(drained.exit_code, 0) << drained.err;
  EXPECT_EQ(json::parse(drained.out), (json{{"state", "drained"}, {"runtime_dir", runtime}, {"pid", pid}}));
}

}  // namespace
}  // namespace jitc
