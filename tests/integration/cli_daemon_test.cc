// `jitc` with the real daemon: starting it, stopping it, and what happens when it is stopped or killed.
#include <dlfcn.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <regex>
#include <thread>

#include "tests/support/command.h"
#include "tests/support/pseudo_terminal.h"

namespace jitc {
namespace {

class CliDaemonTest : public testing::CommandTest {
 protected:
  CliDaemonTest() {
    environment["JITC_AUTOSTART"] = "";
    environment["JITC_IDLE_EXIT"] = "60s";  // should a test end without its daemon's end
  }
  ~CliDaemonTest() override { jitc({"daemon", "stop"}); }

  pid_t daemon_pid() const { return std::stoi(read(runtime + "/" + common::kLockName)); }
  // A zombie, which nobody has waited for, has ended.
  static bool is_running(pid_t pid) {
    const std::string stat = read("/proc/" + std::to_string(pid) + "/stat");
    return !stat.empty() && stat[stat.rfind(')') + 2] != 'Z';
  }
  json stats() const { return json::parse(jitc({"stats", "--json"}).out); }
  std::vector<std::unique_ptr<Process>> start_all(std::size_t count, const std::vector<std::string>& arguments) const {
    std::vector<std::string> argv = {JITC_BIN_DIR "/jitc"};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    std::vector<std::unique_ptr<Process>> processes;
    for (std::size_t i = 0; i < count; ++i) processes.push_back(std::make_unique<Process>(argv, environment));
    return processes;
  }
};

TEST_F(CliDaemonTest, SubmitStartsADaemonAndGivesAModuleThatWorks) {
  const std::string out = directory.path() + "/f.so";
  const auto done = jitc({"submit", "-o", out, write("f.c", kSource)});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  void* module = ::dlopen(out.c_str(), RTLD_NOW);
  ASSERT_NE(module, nullptr) << ::dlerror();
  EXPECT_EQ(reinterpret_cast<int (*)()>(::dlsym(module, "f"))(), 42);
  ::dlclose(module);
}

TEST_F(CliDaemonTest, HitsGoAroundTheDaemonAndAreCounted) {
  const std::string file = write("f.c", kSource);
  const std::string path = jitc({"submit", file}).out;
  EXPECT_TRUE(path.starts_with(store + "/v1/")) << path;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(jitc({"submit", file}).out, path);
  const auto counters = stats();
  EXPECT_EQ(counters["compiles_started"], 1);
  EXPECT_EQ(counters["hits"], 5);
}

TEST_F(CliDaemonTest, ManyThatStartADaemonAtOnceGetOne) {
  const auto processes = start_all(16, {"submit", "--json", write("f.c", kSource)});
  for (const auto& process : processes) {
    const auto done = process->wait();
    EXPECT_EQ(done.exit_code, 0) << done.err;
  }
  EXPECT_EQ(stats()["compiles_started"], 1);
}

TEST_F(CliDaemonTest, StartReturnsAndSaysWhoRuns) {
  // run() waits until both streams are closed: the daemon must hold neither.
  const auto first = jitc({"daemon", "start"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const std::string who = "pid " + std::to_string(daemon_pid());
  EXPECT_THAT(first.err, HasSubstr("started, " + who));
  const auto second = jitc({"daemon", "start"});
  EXPECT_EQ(second.exit_code, 0);
  EXPECT_THAT(second.err, HasSubstr("already running, " + who));
  EXPECT_THAT(jitc({"daemon", "status"}).out, HasSubstr(who));
  EXPECT_THAT(jitc({"status"}).out, HasSubstr(who));
}

TEST_F(CliDaemonTest, StopEndsItAndLeavesNoSocketBehind) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  EXPECT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  EXPECT_FALSE(is_running(pid));
  EXPECT_FALSE(fs::exists(socket));
  EXPECT_EQ(jitc({"daemon", "status"}).exit_code, 3);
  EXPECT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
}

TEST_F(CliDaemonTest, AStoppedDaemonTimesOut) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  auto impatient = environment;
  impatient["JITC_TIMEOUT"] = "500ms";
  const auto done = run_in(impatient, {"submit", write("f.c", kSource)});
  EXPECT_EQ(::kill(pid, SIGCONT), 0);
  EXPECT_EQ(done.exit_code, 6) << done.err;
  EXPECT_EQ(jitc({"submit", write("f.c", kSource)}).exit_code, 0);
}

TEST_F(CliDaemonTest, AStoppedDaemonHoldsNoCommandLongerThanItIsGiven) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  const auto drained = jitc({"drain", "--timeout=0.3"});
  EXPECT_EQ(drained.exit_code, 6) << drained.err;
  EXPECT_THAT(drained.err, HasSubstr("within --timeout 0.3"));
  environment["JITC_TIMEOUT"] = "300ms";
  for (const char* command : {"status", "jobs", "stats", "trace"}) {
    const auto asked = jitc({command});
    EXPECT_EQ(asked.exit_code, 6) << command;
    EXPECT_THAT(asked.err, HasSubstr("pid " + std::to_string(pid) + ", does not answer within 0.3 s")) << command;
    EXPECT_EQ(asked.err.find("jitc status"), std::string::npos) << "of no use here: " << asked.err;
  }
  EXPECT_EQ(jitc({"cancel", "1"}).exit_code, 6);
  EXPECT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(CliDaemonTest, AnInterruptEndsADrainThatHangs) {
  environment["JITC_TIMEOUT"] = "0";
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  Process drain({JITC_BIN_DIR "/jitc", "drain", "--timeout=0"}, environment);
  // Its handler stands once the signal is caught.
  const auto catches = [&] {
    const std::string status = read("/proc/" + std::to_string(drain.pid()) + "/status");
    const auto at = status.find("SigCgt:");
    return at != std::string::npos && (std::stoull(status.substr(at + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
  };
  while (!catches()) std::this_thread::yield();
  drain.signal(SIGINT);
  const auto done = drain.wait();
  EXPECT_EQ(done.exit_code, 9) << done.err;
  EXPECT_THAT(done.err, HasSubstr("interrupted"));
  EXPECT_EQ(::kill(pid, SIGCONT), 0);
}

TEST_F(CliDaemonTest, ADrainIsSeenEverywhereAndTheNextStartWaitsForItsEnd) {
  environment["JITC_MAX_COMPILERS"] = "1";
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  const std::string large = testing::run({"/bin/sh", "-c", "exec gunzip -c " JITC_LARGE_SOURCE}).out;
  auto talking = environment;
  talking["JITC_PROGRESS"] = "1";
  Process compile({JITC_BIN_DIR "/jitc", "submit", "--flag=-fmath-errno", "--share=0", write("large.c", large)},
                  talking);
  ASSERT_TRUE(compile.wait_for_error_text(": compiling,"));
  ASSERT_EQ(jitc({"drain", "--no-wait"}).exit_code, 0);
  EXPECT_THAT(jitc({"daemon", "status"}).out, HasSubstr("draining, pid " + std::to_string(pid)));
  for (const char* command : {"status", "top"}) EXPECT_THAT(jitc({command}).out, HasSubstr("draining")) << command;
  EXPECT_THAT(jitc({"jobs"}).err, HasSubstr("draining"));
  EXPECT_EQ(json::parse(jitc({"jobs", "--json"}).out)["draining"], true);
  EXPECT_EQ(json::parse(jitc({"status", "--json"}).out)["daemon"]["draining"], true);
  EXPECT_EQ(stats()["draining"], 1);
  const auto impatient = jitc({"daemon", "start", "--timeout=0.3"});
  EXPECT_EQ(impatient.exit_code, 3) << impatient.err;
  EXPECT_THAT(impatient.err, HasSubstr("no other was started"));
  Process next({JITC_BIN_DIR "/jitc", "daemon", "start"}, environment);
  ASSERT_TRUE(next.wait_for_error_text("waiting for its end"));
  compile.signal(SIGINT);
  compile.wait();
  const auto started = next.wait();
  EXPECT_EQ(started.exit_code, 0) << started.err;
  EXPECT_NE(daemon_pid(), pid);
  EXPECT_THAT(started.err, HasSubstr("started, pid " + std::to_string(daemon_pid())));
  EXPECT_THAT(jitc({"daemon", "status"}).out, HasSubstr("running"));
}

TEST_F(CliDaemonTest, AfterAKilledDaemonTheNextSubmitWorks) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const pid_t pid = daemon_pid();
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(daemon_pid(), pid);
}

TEST_F(CliDaemonTest, DiagnosticsNameTheFileAsGiven) {
  const std::string file = write("bad.c", "int f(void) {\n  int x = 1\n  return x;\n}\n");
  // The two see the missing semicolon at different places.
  for (const auto& [compiler, place] : {std::pair{"clang", ":2:12"}, std::pair{"gcc", ":3:3"}}) {
    const auto done = jitc({"submit", std::string("--cc=") + compiler, file});
    EXPECT_EQ(done.exit_code, 1) << compiler << ": " << done.err;
    EXPECT_THAT(done.err, HasSubstr(file + place + ": error: ")) << compiler;
    EXPECT_THAT(done.err, HasSubstr("^")) << compiler;
  }
}

TEST_F(CliDaemonTest, CountersHaveTheirNamesAndMove) {
  const std::string file = write("f.c", kSource);
  ASSERT_EQ(jitc({"submit", file}).exit_code, 0);
  ASSERT_EQ(jitc({"submit", write("bad.c", "int f(void) {")}).exit_code, 1);
  const auto counters = stats();
  for (const char* name :
       {"requests", "hits", "merged", "compiles_started", "compiles_failed", "out_of_memory", "retries", "quarantined",
        "refused_peers", "running", "running_peak", "memory_reserved_bytes", "memory_peak_bytes", "daemon_rss_bytes"})
    EXPECT_TRUE(counters.contains(name) && counters[name].is_number_unsigned()) << name << " in " << counters.dump();
  EXPECT_EQ(counters["requests"], 2);
  EXPECT_EQ(counters["compiles_started"], 2);
  EXPECT_EQ(counters["compiles_failed"], 1);
  EXPECT_EQ(counters["running"], 0);
  EXPECT_EQ(counters["running_peak"], 1);
  EXPECT_EQ(counters["memory_reserved_bytes"], 0);
  EXPECT_GT(counters["memory_peak_bytes"], 0);
  EXPECT_GT(counters["daemon_rss_bytes"], 1 << 20);
  for (const auto& [name, value] : counters.items()) EXPECT_THAT(jitc({"stats"}).out, HasSubstr(name));
}

TEST_F(CliDaemonTest, StatusNamesDaemonStoreAndSocket) {
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  const std::string status = jitc({"status"}).out;
  for (const std::string& text : {"pid " + std::to_string(daemon_pid()), store, socket})
    EXPECT_THAT(status, HasSubstr(text));
}

TEST_F(CliDaemonTest, TheCacheIsTheDaemonsStore) {
  const std::string file = write("f.c", kSource);
  const auto submitted = json::parse(jitc({"submit", "--json", file}).out);
  environment["JITC_STORE"] = "";  // the daemon's counts
  const auto listed = json::parse(jitc({"cache", "ls", "--json"}).out);
  for (const char* name : {"key", "path"}) EXPECT_EQ(listed[name], submitted[name]);
  EXPECT_EQ(listed["layer"], store);
  EXPECT_EQ(listed["size"], fs::file_size(listed["path"].get<std::string>()));
  EXPECT_EQ(json::parse(jitc({"cache", "show", listed["key"]}).out)["key"], submitted["key"]);
  const auto verified = jitc({"cache", "verify"});
  EXPECT_EQ(verified.exit_code, 0);
  EXPECT_THAT(verified.err, HasSubstr("1 good, 0 corrupt, 0 unreadable"));
}

TEST_F(CliDaemonTest, ATerminalShowsPhasePlaceSecondsAndMemory) {
  environment["JITC_MAX_COMPILERS"] = "1";
  ASSERT_EQ(jitc({"daemon", "start"}).exit_code, 0);
  // It keeps a compiler busy for longer than the test looks.
  const std::string large = testing::run({"/bin/sh", "-c", "exec gunzip -c " JITC_LARGE_SOURCE}).out;
  ASSERT_FALSE(large.empty());
  testing::PseudoTerminal first, second;
  if (!first || !second) GTEST_SKIP() << "no pseudo-terminals here";
  const auto start = [&](const testing::PseudoTerminal& terminal, const std::string& file) {
    return std::make_unique<Process>(
        std::vector<std::string>{"/bin/sh", "-c",
                                 "exec \"$0\" submit --flag=-fmath-errno --share=0 \"$1\" 2>" + terminal.name(),
                                 JITC_BIN_DIR "/jitc", file},
        environment);
  };
  constexpr std::chrono::seconds kPatience(60);
  const auto compiling = start(first, write("large.c", large));
  const std::regex compiles("\r\x1b\\[Kjitc: [^\r\n]*/large\\.c: compiling, [1-9][0-9]* s, [0-9]+ MiB");
  const std::string shown = first.wait_for(compiles, kPatience);
  EXPECT_TRUE(std::regex_search(shown, compiles)) << shown;
  const auto waiting = start(second, write("next.c", kSource));
  const std::regex waits("\r\x1b\\[Kjitc: [^\r\n]*/next\\.c: queued, place 1, [1-9][0-9]* s");
  const std::string shown_next = second.wait_for(waits, kPatience);
  EXPECT_TRUE(std::regex_search(shown_next, waits)) << shown_next;
  for (const auto* process : {compiling.get(), waiting.get()}) process->signal(SIGINT);
  EXPECT_EQ(compiling->wait().exit_code, 9);
  EXPECT_EQ(waiting->wait().exit_code, 9);
}

}  // namespace
}  // namespace jitc
