// `jitc explain` and `jitc replay` with the real daemon: what differs from the nearest artifact, the capsule of each
// kind of failure, and what comes of it.
#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <initializer_list>
#include <map>

#include "common/capsule.h"
#include "tests/support/command.h"

namespace jitc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Not;

constexpr const char* kFakeCompiler = JITC_BIN_DIR "/jitc-fakecc";

class DaemonCommandTest : public testing::CommandTest {
 protected:
  DaemonCommandTest() {
    environment["JITC_AUTOSTART"] = "";
    environment["JITC_IDLE_EXIT"] = "60s";  // should a test end without its daemon's end
    environment["JITC_COMPILERS"] = kFakeCompiler;
    environment["JITC_MAX_COMPILERS"] = "1";
  }
  ~DaemonCommandTest() override { jitc({"daemon", "stop"}); }

  static json parsed(const testing::Finished& done) {
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return json::parse(done.out, nullptr, false);
  }
};

// ---- explain -------------------------------------------------------------------------------------------------------

class ExplainTest : public DaemonCommandTest {
 protected:
  json explain(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"explain", "--json"});
    return parsed(jitc(arguments));
  }
  // The key of what is compiled now.
  std::string submit(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"submit", "--json"});
    return parsed(jitc(arguments)).value("key", "");
  }
  static std::vector<std::string> fields(const json& differs) {
    std::vector<std::string> names;
    for (const auto& one : differs)
      if (!one.contains("follows")) names.push_back(one["field"]);
    return names;
  }
  void age(const std::string& key, int seconds) const {
    const std::string path = common::artifact_path(store, *common::Digest::from_hex(key));
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(seconds));
  }
};

TEST_F(ExplainTest, AHitIsSaidAndEachFieldThatDiffersOnAMiss) {
  const std::string file = write("f.c", kSource);
  const std::string key = submit({file});
  const json hit = explain({file});
  EXPECT_EQ(hit["hit"], true);
  EXPECT_EQ(hit["key"], key);
  EXPECT_FALSE(hit.contains("nearest"));
  EXPECT_EQ(parsed(jitc({"cache", "show", key}))["request"], hit["request"]);

  const std::vector<std::pair<std::string, std::vector<std::string>>> changes = {
      {"flags", {"--flag=-O1"}},          {"isa_wish", {"--isa=x86-64"}}, {"share", {"--share=0"}},
      {"exact_flags", {"--exact-flags"}}, {"isa_wish", {"--isa=native"}},
  };
  for (const auto& [name, arguments] : changes) {
    auto words = arguments;
    words.push_back(file);
    const json miss = explain(words);
    EXPECT_EQ(miss["hit"], false) << name;
    EXPECT_EQ(miss["nearest"]["key"], key) << name;
    EXPECT_THAT(fields(miss["nearest"]["differs"]), ElementsAre(name));
  }
  const json flags = explain({"--flag=-O1", file})["nearest"]["differs"][0];
  EXPECT_EQ(flags["here"], "-O1");
  EXPECT_EQ(flags["there"], "(none)");
}

TEST_F(ExplainTest, AnotherCompilerIsOneDifference) {
  const std::string file = write("f.c", kSource);
  const std::string key = submit({"--cc", kFakeCompiler, file});
  EXPECT_EQ(explain({"--cc", kFakeCompiler, file})["hit"], true);
  const json miss = explain({file});
  EXPECT_EQ(miss["nearest"]["key"], key);
  EXPECT_THAT(fields(miss["nearest"]["differs"]), ElementsAre("compiler"));
}

TEST_F(ExplainTest, TheNearestHasTheFewestDifferencesThenTheSameNameThenTheLastUse) {
  const std::string far = write("far.c", kSource), near = write("near.c", "int g(void) { return 1; }\n");
  const std::string file = write("f.c", "int h(void) { return 2; }\n");
  const std::string twice = submit({"--flag=-O1", "--share=0", far});
  const std::string other = submit({near});
  age(other, 5000);
  EXPECT_EQ(explain({file})["nearest"]["key"], other) << "one difference, though used long ago";
  const std::string later = submit({write("later.c", "int k(void) { return 3; }\n")});
  EXPECT_EQ(explain({file})["nearest"]["key"], later) << "the last used of equals";
  const std::string own = submit({write("f.c", "int h(void) { return 7; }\n")});
  age(own, 9000);
  write("f.c", "int h(void) { return 2; }\n");
  EXPECT_EQ(explain({file})["nearest"]["key"], own) << "the same name before the last use";
  EXPECT_NE(twice, other);
}

TEST_F(ExplainTest, OfTextsTheFirstLineThatDiffersIsShownWhereTheOtherIsKnown) {
  const std::string one = write("one.c", "int f(void) {\n  return 1;\n}\n");
  const std::string key = submit({one});
  const std::string two = write("two.c", "int f(void) {\n  return 2;\n}\n");
  const json line = explain({two})["nearest"]["differs"][0]["line"];
  EXPECT_EQ(line["number"], 2);
  EXPECT_EQ(line["here"], "  return 2;");
  EXPECT_EQ(line["there"], "  return 1;");
  const auto text = jitc({"explain", two});
  EXPECT_THAT(text.out, HasSubstr(two + ": a miss\n"));
  EXPECT_THAT(text.out, HasSubstr("nearest: " + key.substr(0, 12)));
  EXPECT_THAT(text.out, HasSubstr("* text"));
  write("one.c", "another text altogether\n");
  const json unknown = explain({two})["nearest"]["differs"][0];
  EXPECT_FALSE(unknown.contains("line"));
  EXPECT_THAT(std::string(unknown["there"]), HasSubstr("28 bytes"));
}

TEST_F(ExplainTest, TwoKeysOrFilesAreShownSideBySide) {
  const std::string file = write("f.c", kSource);
  const std::string one = submit({file}), two = submit({"--flag=-O1", file});
  const json both = explain({one.substr(0, 20), two});
  EXPECT_EQ(both["here"]["key"], one);
  EXPECT_EQ(both["there"]["key"], two);
  EXPECT_THAT(fields(both["differs"]), ElementsAre("flags"));
  const auto text = jitc({"explain", one, two});
  EXPECT_THAT(text.out, HasSubstr("* flags"));
  EXPECT_THAT(text.out, HasSubstr("  text"));
  EXPECT_THAT(text.out, Not(HasSubstr("* text")));
  EXPECT_EQ(explain({one})["fields"]["share"], "auto");
  EXPECT_THAT(fields(explain({file, two})["differs"]), ElementsAre("flags"));
  const auto none = jitc({"explain", std::string(64, '0')});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("no artifact has such a key"));
}

TEST_F(ExplainTest, WithoutADaemonItSaysWhatItCannotKnow) {
  const std::string file = write("f.c", kSource);
  const std::string key = submit({file});
  ASSERT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  fs::remove(runtime + "/" + common::kIdentityFile);
  const auto done = jitc({"explain", "--json", file});
  const json told = parsed(done);
  EXPECT_TRUE(told["hit"].is_null());
  EXPECT_TRUE(told["key"].is_null());
  EXPECT_TRUE(told["fields"]["compiler_identity"].is_null());
  EXPECT_EQ(told["nearest"]["key"], key);
  EXPECT_TRUE(told["nearest"]["differs"].empty());
  EXPECT_THAT(done.err, HasSubstr("no daemon has said which compiler it has"));
  EXPECT_FALSE(fs::exists(runtime + "/" + common::kLockName)) << "none was started";
  EXPECT_THAT(fields(explain({"--flag=-O1", file})["nearest"]["differs"]), ElementsAre("flags"));
}

TEST_F(ExplainTest, WhatIsRefusedIsRefusedHereToo) {
  const std::string file = write("f.c", kSource);
  EXPECT_EQ(jitc({"explain", "--flag=-fplugin=x", file}).exit_code, 4);
  EXPECT_EQ(jitc({"explain", write("deep.c", std::string(20000, '('))}).exit_code, 1);
  EXPECT_EQ(jitc({"explain", directory.path() + "/none.c"}).exit_code, 2);
}

TEST_F(ExplainTest, AnArtifactOfAnEarlierVersionIsComparedByWhatItSays) {
  put(kSource, "old.c");
  const auto done = jitc({"explain", "--json", write("f.c", "int other;\n")});
  EXPECT_EQ(parsed(done)["nearest"]["name"], "old.c");
  EXPECT_THAT(done.err, HasSubstr("earlier jitc"));
}

// ---- capsules ------------------------------------------------------------------------------------------------------

class CapsuleTest : public DaemonCommandTest {
 protected:
  // Submits what fails; the capsule that the error names.
  std::string failed(const std::vector<std::string>& arguments, int exit_code) const {
    std::vector<std::string> words = {"submit", "--json"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto done = jitc(words);
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    const json object = json::parse(done.out, nullptr, false);
    const std::string path = object.is_object() && object.contains("error") ? object["error"]["capsule"] : "";
    EXPECT_TRUE(fs::exists(path)) << "'" << path << "': " << done.err;
    EXPECT_THAT(done.err, HasSubstr("jitc replay " + path));
    return path;
  }
  static json capsule(const std::string& path) { return json::parse(read(path), nullptr, false); }
  std::string fake(const std::string& orders) const {
    return write("fake.c", "// fakecc: " + orders + "\nint f(void) { return 1; }\n");
  }
  std::size_t count() const {
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(runtime + "/capsules")) files += entry.is_regular_file() ? 1 : 0;
    return files;
  }
  std::string replay(const std::string& path, int exit_code, std::vector<std::string> arguments = {}) const {
    arguments.insert(arguments.begin(), {"replay", path});
    const auto done = jitc(arguments);
    EXPECT_EQ(done.exit_code, exit_code) << done.err;
    return done.out;
  }
};

TEST_F(CapsuleTest, OfASourceThatDoesNotCompile) {
  environment["LC_CTYPE"] = "C.UTF-8";
  const std::string path = failed({"--flag=-O1", write("bad.c", "int f(void) { return q; }\n")}, 1);
  EXPECT_TRUE(path.starts_with(runtime + "/capsules/"));
  const json told = capsule(path);
  EXPECT_EQ(told["version"], 1);
  EXPECT_EQ(told["jitc"], common::build_version());
  EXPECT_EQ(told["request"]["origin"], "int f(void) { return q; }\n");
  EXPECT_EQ(told["request"]["flags"].back(), "-O1");
  EXPECT_EQ(told["error"]["kind"], "INVALID_SOURCE");
  EXPECT_EQ(told["error"]["diagnostics"][0]["line"], 1);
  EXPECT_THAT(told["command"].dump(), HasSubstr("\"-O1\""));
  EXPECT_EQ(told["command"][0], "clang");
  EXPECT_THAT(told["compiler"]["identity"].dump(), HasSubstr("clang"));
  EXPECT_THAT(told["environment"].dump(), HasSubstr("LC_CTYPE=C.UTF-8"));
  EXPECT_EQ(told["limits"]["compilers"], 1);
  EXPECT_GT(told["limits"]["memory_bytes"], 0u);
  EXPECT_EQ(told["use"]["attempts"], 1);
  EXPECT_EQ(replay(path, 1), "the same failure\n");
}

TEST_F(CapsuleTest, OfACompilerThatCrashes) {
  const std::string path = failed({"--cc", kFakeCompiler, fake("crash 11")}, 8);
  const json told = capsule(path);
  EXPECT_EQ(told["error"]["kind"], "COMPILER_CRASHED");
  EXPECT_EQ(told["use"]["signal"], 11);
  EXPECT_EQ(told["use"]["attempts"], 2);
  EXPECT_EQ(told["command"][0], kFakeCompiler);
  EXPECT_EQ(told["compiler"]["path"], kFakeCompiler);
  EXPECT_EQ(replay(path, 8), "the same failure\n");
  EXPECT_EQ(replay(path, 0, {"--cc=clang"}), "it compiles here\n");
}

TEST_F(CapsuleTest, OfOneThatRunsOutOfMemory) {
  environment["JITC_MEMORY_BUDGET"] = "300M";
  const std::string path = failed({"--exact-flags", "--cc", kFakeCompiler, fake("allocate 2G")}, 5);
  const json told = capsule(path);
  EXPECT_EQ(told["error"]["kind"], "OUT_OF_MEMORY");
  EXPECT_EQ(told["command"][0], kFakeCompiler);
  EXPECT_GT(told["limits"]["budget_bytes"], 0u);
  EXPECT_LE(told["limits"]["budget_bytes"], 300u << 20);
  EXPECT_EQ(replay(path, 5), "the same failure\n");
}

TEST_F(CapsuleTest, OfOneThatTakesTooLong) {
  environment["JITC_CPU_LIMIT"] = "1s";
  const std::string path = failed({"--cc", kFakeCompiler, fake("spin")}, 6);
  const json told = capsule(path);
  EXPECT_EQ(told["error"]["kind"], "TIMED_OUT");
  EXPECT_EQ(told["command"][0], kFakeCompiler);
  EXPECT_EQ(told["limits"]["cpu_seconds"], 1);
}

TEST_F(CapsuleTest, TheSameFailureHasOneAndARememberedOneNamesIt) {
  const std::string file = write("bad.c", "int f(void) { return q; }\n");
  const std::string path = failed({file}, 1);
  EXPECT_EQ(failed({file}, 1), path) << "answered from the daemon's memory";
  EXPECT_EQ(failed({"--no-cache", file}, 1), path);
  EXPECT_EQ(count(), 1u);
  EXPECT_NE(failed({"--flag=-O1", file}, 1), path);
  EXPECT_EQ(count(), 2u);
}

TEST_F(CapsuleTest, AsManyAreKeptAsTheSettingSays) {
  environment["JITC_CAPSULES"] = "2";
  const std::string file = write("bad.c", "int f(void) { return q; }\n");
  for (const char* flag : {"--flag=-O1", "--flag=-O2", "--flag=-O3"}) failed({flag, file}, 1);
  EXPECT_EQ(count(), 2u);
}

TEST_F(CapsuleTest, AReplayRemovesNone) {
  environment["JITC_CAPSULES"] = "1";
  const std::string file = write("bad.c", "int f(void) { return q; }\n");
  const std::string path = failed({file}, 1);
  EXPECT_EQ(replay(path, 1, {"--cc", kFakeCompiler}), "another failure\n") << "under another key";
  EXPECT_TRUE(fs::exists(path));
  const std::string text = read(path);
  EXPECT_EQ(replay(path, 1), "the same failure\n");
  EXPECT_EQ(read(path), text);
  EXPECT_EQ(count(), 1u);
}

TEST_F(CapsuleTest, NoneIsKeptAndNamedWhenTheSettingSaysSo) {
  environment["JITC_CAPSULES"] = "0";
  const auto done = jitc({"submit", "--json", write("bad.c", "int f(void) { return q; }\n")});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(json::parse(done.out)["error"]["capsule"], "");
  EXPECT_THAT(done.err, Not(HasSubstr("jitc replay")));
  EXPECT_FALSE(fs::exists(runtime + "/capsules"));
}

TEST_F(CapsuleTest, NoneIsNamedThatCouldNotBeWritten) {
  std::ofstream(runtime + "/capsules").put('x');  // a file where the directory should be
  const auto done = jitc({"submit", "--json", write("bad.c", "int f(void) { return q; }\n")});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(json::parse(done.out)["error"]["capsule"], "");
}

TEST_F(CapsuleTest, ADiskThatHangsHoldsNoAnswer) {
  const std::string fifo = directory.path() + "/fifo", file = write("bad.c", "int f(void) { return q; }\n");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  auto held = environment;
  held["LD_PRELOAD"] = JITC_FAULT_SHIM;
  held["FAULT_RULES"] = write("rules", "hold open */capsules/*.new " + fifo + " program jitcd\n");
  const auto started = run_in(held, {"daemon", "start"});
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const auto named = [&] {
    const auto done = jitc({"submit", "--json", file});
    EXPECT_EQ(done.exit_code, 1) << done.err;
    return json::parse(done.out)["error"]["capsule"].get<std::string>();
  };
  EXPECT_EQ(named(), "");
  {
    const common::Fd released(::open(fifo.c_str(), O_WRONLY));
  }  // waits until the write hangs there
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::string path;
  while (path.empty() && std::chrono::steady_clock::now() < end) path = named();
  EXPECT_TRUE(fs::exists(path)) << "written late, and named since";
}

TEST_F(CapsuleTest, NobodyElseCanReadThem) {
  const std::string file = write("bad.c", "int f(void) { return q; }\n");
  const auto started =
      testing::run({"/bin/sh", "-c", "umask 000; exec " JITC_BIN_DIR "/jitc daemon start"}, environment);
  ASSERT_EQ(started.exit_code, 0) << started.err;
  const std::string path = failed({file}, 1);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ASSERT_EQ(::stat((runtime + "/capsules").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700u);
}

TEST_F(CapsuleTest, InABatchJobItOutlivesTheJobsDaemon) {
  environment.erase("JITC_RUNTIME_DIR");
  environment["XDG_RUNTIME_DIR"] = directory.path();
  environment["SLURM_JOB_ID"] = "7";
  environment["SLURMD_NODENAME"] = "n1";
  environment["JITC_AUTOSTART"] = "1";
  const std::string path = failed({write("bad.c", "int f(void) { return q; }\n")}, 1);
  EXPECT_EQ(fs::path(path).parent_path().string(), directory.path() + "/jitc/capsules");
  ASSERT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(CapsuleTest, ACopyThatIsMendedCompilesElsewhere) {
  const std::string path = failed({write("bad.c", "int f(void) { return q; }\n")}, 1);
  ASSERT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
  json told = capsule(path);
  fs::remove_all(runtime + "/capsules");
  const std::string elsewhere = write("copied.json", told.dump());
  EXPECT_EQ(replay(elsewhere, 1), "the same failure\n");
  told["request"]["origin"] = "int f(void) { return p; }\n";
  EXPECT_EQ(replay(write("worse.json", told.dump()), 1), "another failure\n");
  told["request"]["origin"] = "int f(void) { return 1; }\n";
  told["jitc"] = "0.0.1";
  const std::string mended = write("mended.json", told.dump());
  const std::string kept = directory.path() + "/kept/here";
  const auto done = jitc({"replay", mended, "--keep", kept});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "it compiles here\n");
  EXPECT_THAT(done.err, HasSubstr("another jitc: recorded 0.0.1, here " + std::string(common::build_version())));
  EXPECT_THAT(done.err, HasSubstr("another request"));
  EXPECT_EQ(read(kept + "/source.c"), "int f(void) { return 1; }\n");
  EXPECT_THAT(read(kept + "/command.txt"), HasSubstr("source.c\n"));
  EXPECT_TRUE(read(kept + "/module.so").starts_with("\177ELF"));
  const json object = json::parse(jitc({"replay", "--json", mended}).out, nullptr, false);
  EXPECT_EQ(object["result"], "compiles");
  EXPECT_EQ(object["recorded"]["kind"], "INVALID_SOURCE");
}

TEST_F(CapsuleTest, LimitsAndVariablesThatAreOthersAreSaid) {
  const std::string path = failed({write("bad.c", "int f(void) { return q; }\n")}, 1);
  json told = capsule(path);
  told["limits"]["cpu_seconds"] = 7;
  told["environment"] = {"LANGUAGE=xx", "SDKROOT=/else\x1b[31mwhere"};
  const std::string other = write("other.json", told.dump());
  const auto done = jitc({"replay", other});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_THAT(done.err,
              HasSubstr("another limit of CPU time: recorded 7 s, here 600 s (what is recorded is not applied)"));
  EXPECT_THAT(done.err, HasSubstr("another variable LANGUAGE: recorded 'xx', here (unset)"));
  EXPECT_THAT(done.err, Not(HasSubstr("\x1b[31m")));
  const json object = json::parse(jitc({"replay", "--json", other}).out, nullptr, false);
  std::map<std::string, std::string> changes;
  for (const auto& change : object["changes"]) changes[change["what"]] = change["here"];
  EXPECT_EQ(changes["limit of CPU time"], "600 s");
  EXPECT_EQ(changes["variable LANGUAGE"], "(unset)");
  EXPECT_FALSE(changes.contains("number of compilers at once")) << "as recorded";
}

TEST_F(CapsuleTest, WhatIsKeptOverwritesNothingOfItself) {
  json told = capsule(failed({write("bad.c", "int f(void) { return q; }\n")}, 1));
  const auto with_headers = [&told](std::initializer_list<const char*> names) {
    told["request"]["headers"] = json::array();
    for (const char* name : names)
      told["request"]["headers"].push_back(
          json::object({{"name", name}, {"text", std::string("/* ") + name + " */\n"}}));
    return told.dump();
  };
  const std::string kept = directory.path() + "/kept";
  replay(write("all.json", with_headers({"source.c", "log.txt", "a/b.h", "a/c.h"})), 4, {"--keep", kept});
  EXPECT_EQ(read(kept + "/source.c"), "int f(void) { return q; }\n");
  EXPECT_THAT(read(kept + "/log.txt"), HasSubstr("REFUSED")) << "no header may have the source's name";
  for (const char* name : {"source.c", "log.txt", "a/b.h", "a/c.h"})
    EXPECT_EQ(read(kept + "/headers/" + name), std::string("/* ") + name + " */\n");
  const std::string none = directory.path() + "/none";
  for (const auto names : {std::initializer_list<const char*>{"a", "a/b"}, {"a/b", "a"}, {"a/b", "a/./b"}}) {
    const auto done = jitc({"replay", write("collide.json", with_headers(names)), "--keep", none});
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_THAT(done.err, HasSubstr("without --keep"));
    EXPECT_FALSE(fs::exists(none)) << "nothing is written by half";
  }
  const auto in_the_way = jitc({"replay", write("plain.json", with_headers({})), "--keep", write("file", "") + "/x"});
  EXPECT_EQ(in_the_way.exit_code, 2);
  EXPECT_THAT(in_the_way.err, AllOf(HasSubstr("--keep"), Not(HasSubstr(" -o"))));
}

TEST_F(CapsuleTest, WhatIsCompiledInPlaceOfTheTextIsCompiledAgain) {
  const std::string path = failed({"--share=1", write("bad.c", "int f(void) { return q; }\n")}, 1);
  json told = capsule(path);
  told["request"]["code"] = "int f(void) { return 5; }\n";
  EXPECT_EQ(replay(write("shared.json", told.dump()), 0), "it compiles here\n");
}

TEST_F(CapsuleTest, WhatIsNoCapsuleIsSaid) {
  EXPECT_EQ(jitc({"replay", directory.path()}).exit_code, 2);
  const auto other = jitc({"replay", write("f.c", kSource)});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("not a capsule"));
  json told = capsule(failed({write("bad.c", "int f(void) { return q; }\n")}, 1));
  told["version"] = 2;
  EXPECT_EQ(jitc({"replay", write("later.json", told.dump())}).exit_code, 3);
  told["version"] = 1;
  told["request"]["headers"] = json::array({json::object({{"name", "../escape.h"}, {"text", ""}})});
  const auto escape = jitc({"replay", write("escape.json", told.dump()), "--keep", directory.path() + "/kept"});
  EXPECT_EQ(escape.exit_code, 2);
  EXPECT_FALSE(fs::exists(directory.path() + "/escape.h"));
}

}  // namespace
}  // namespace jitc
