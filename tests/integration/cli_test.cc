// `jitc` as a process: what it prints where, its exit codes, what it asks the daemon and what it does not.
#include <sched.h>
#include <sys/socket.h>

#include <cstring>
#include <future>
#include <latch>

#include "tests/support/command.h"
#include "tests/support/fake_daemon.h"

namespace jitc {
namespace {

using testing::FakeDaemon;
using ::testing::Not;

class CliTest : public testing::CommandTest {
 protected:
  // Answers every request with a published artifact at this path.
  static FakeDaemon::Script publishing(const std::string& path, bool with_bytes = false) {
    return {.compile = [=](const v1::CompileRequest& request, FakeDaemon::Events& events) {
      v1::Artifact answer;
      answer.set_path(path + request.origin().substr(0, 4));
      answer.set_merged(true);
      answer.set_compile_seconds(0.25);
      answer.set_peak_bytes(1000);
      const auto key = common::sha256("key");
      const std::string bytes = with_bytes || request.want_bytes() ? artifact(key, "f") : std::string();
      FakeDaemon::send_artifact(events, bytes, answer);
      return grpc::Status::OK;
    }};
  }
  static FakeDaemon::Script failing(v1::FailureKind kind, const std::string& message) {
    return {.compile = [=](const v1::CompileRequest&, FakeDaemon::Events& events) {
      v1::CompileEvent event;
      auto& failure = *event.mutable_finished()->mutable_failure();
      failure.set_kind(kind);
      failure.set_message(message);
      auto& diagnostic = *failure.add_diagnostics();
      diagnostic.set_severity("error");
      diagnostic.set_line(3);
      diagnostic.set_column(7);
      diagnostic.set_message("expected ';'");
      diagnostic.set_excerpt("  int x\n       ^");
      events.Write(event);
      return grpc::Status::OK;
    }};
  }
};

TEST_F(CliTest, AHitPrintsThePathAloneAndOpensNoConnection) {
  FakeDaemon daemon(socket, publishing("/never"));
  ASSERT_TRUE(common::write_identity(runtime, identity));
  const common::Fd hits(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto address = common::socket_address(runtime + "/" + common::kHitsSocketName);
  ASSERT_EQ(::bind(hits.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  const std::string path = put(kSource, "f");

  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(done.out, path + "\n");
  EXPECT_EQ(done.err, "");
  EXPECT_EQ(daemon.connections(), 0);
  common::Digest told;
  ASSERT_EQ(::recv(hits.get(), told.bytes.data(), told.bytes.size() + 0, MSG_DONTWAIT | MSG_TRUNC), 32);
  EXPECT_EQ(told, key_of(kSource));
}

TEST_F(CliTest, AHitAsJsonHasTheFiguresOfItsCompile) {
  ASSERT_TRUE(common::write_identity(runtime, identity));
  const std::string path = put(kSource, "f");
  const std::string file = write("f.c", kSource);
  const auto done = jitc({"submit", "--json", file});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto object = json::parse(done.out);
  EXPECT_EQ(object["name"], file);
  EXPECT_EQ(object["path"], path);
  EXPECT_EQ(object["key"], key_of(kSource).hex());
  EXPECT_EQ(object["hit"], true);
  EXPECT_EQ(object["merged"], false);
  EXPECT_EQ(object["seconds"], 1.5);
  EXPECT_EQ(object["peak_bytes"], 12345);
}

TEST_F(CliTest, FlagsAndCompilerAreInTheKey) {
  ASSERT_TRUE(common::write_identity(runtime, identity));
  put(kSource, "f");
  const std::string file = write("f.c", kSource);
  EXPECT_EQ(jitc({"submit", file}).exit_code, 0);
  // No daemon listens, so that a miss is "unreachable".
  EXPECT_EQ(jitc({"submit", "--flag=-O1", file}).exit_code, 3);
  EXPECT_EQ(jitc({"submit", "--cc=gcc", file}).exit_code, 3);
  EXPECT_EQ(jitc({"submit", "--cflags=-O1", file}).exit_code, 3);
  EXPECT_EQ(jitc({"submit", "--no-cache", file}).exit_code, 3);
}

// The compiler may have been upgraded since the daemon read it: what the store has under the old key is not served.
TEST_F(CliTest, AnExternalCompilersHitIsTheDaemonsToGive) {
  ASSERT_TRUE(common::write_identity(runtime, identity));
  put(kSource, "f", "gcc");
  EXPECT_EQ(jitc({"submit", "--cc=gcc", write("f.c", kSource)}).exit_code, 3);
}

TEST_F(CliTest, ACorruptArtifactIsNoHit) {
  ASSERT_TRUE(common::write_identity(runtime, identity));
  const std::string path = put(kSource, "f");
  fs::resize_file(path, fs::file_size(path) / 2);
  FakeDaemon daemon(socket, publishing("/new/"));
  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, "/new/int \n");
  EXPECT_EQ(daemon.compiles(), 1);
}

TEST_F(CliTest, OutputIsAWholeCopyOfVerifiedBytes) {
  const std::string out = directory.path() + "/out.so";
  const std::string file = write("f.c", kSource);
  {
    FakeDaemon daemon(socket, publishing("/x"));
    const auto done = jitc({"submit", "-o", out, file});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(done.out, out + "\n");
    EXPECT_EQ(read(out), artifact(common::sha256("key"), "f"));
  }
  ASSERT_TRUE(common::write_identity(runtime, identity));
  put(kSource, "hit");
  EXPECT_EQ(jitc({"submit", "-o", out, file}).exit_code, 0);
  EXPECT_EQ(read(out), artifact(key_of(kSource), "hit"));
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(directory.path()))
    files += entry.path().filename().string().starts_with("out.so");
  EXPECT_EQ(files, 1u) << "no temporary file is left";
}

TEST_F(CliTest, BytesThatAreNoArtifactAreNotCopied) {
  const std::string out = directory.path() + "/out.so";
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      FakeDaemon::send_artifact(events, "not an artifact", {});
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", "-o", out, write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.out, "");
  EXPECT_FALSE(fs::exists(out));
}

TEST_F(CliTest, AnArtifactThatIsNotPublishedNeedsAnOutput) {
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      FakeDaemon::send_artifact(events, artifact(common::sha256("key"), "f"), {});
                      return grpc::Status::OK;
                    }});
  const std::string file = write("f.c", kSource);
  const auto done = jitc({"submit", file});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("-o FILE"));
  EXPECT_EQ(jitc({"submit", "-o", directory.path() + "/o.so", file}).exit_code, 0);
}

TEST_F(CliTest, AnInvalidSourceIsShownWithItsPlaceAndCaret) {
  FakeDaemon daemon(socket, failing(v1::INVALID_SOURCE, "the source does not compile"));
  const std::string file = write("f.c", kSource);
  const auto done = jitc({"submit", file});
  EXPECT_EQ(done.exit_code, 1);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr(file + ":3:7: error: expected ';'\n  int x\n       ^\n"));
  const auto from_stdin = jitc({"submit", "-"}, kSource);
  EXPECT_EQ(from_stdin.exit_code, 1);
  EXPECT_THAT(from_stdin.err, HasSubstr("<stdin>:3:7: error:"));
  const auto as_json = jitc({"submit", "--json", file});
  EXPECT_EQ(as_json.exit_code, 1);
  EXPECT_EQ(json::parse(as_json.out)["error"]["kind"], "INVALID_SOURCE");
  EXPECT_EQ(json::parse(as_json.out)["error"]["diagnostics"][0]["column"], 7);
}

TEST_F(CliTest, EachKindOfFailureHasItsExitCode) {
  const std::string file = write("f.c", kSource);
  const std::vector<std::pair<v1::FailureKind, int>> codes = {
      {v1::REFUSED, 4},          {v1::OUT_OF_MEMORY, 5}, {v1::TIMED_OUT, 6},         {v1::CANCELLED, 9},
      {v1::COMPILER_CRASHED, 8}, {v1::STORE_FULL, 7},    {v1::STORE_UNAVAILABLE, 7}, {v1::DRAINING, 3},
      {v1::VERSION_SKEW, 3},     {v1::INTERNAL, 70},     {v1::MISCOMPILED, 8}};
  for (const auto& [kind, code] : codes) {
    FakeDaemon daemon(socket, failing(kind, "no"));
    EXPECT_EQ(jitc({"submit", file}).exit_code, code) << kind;
  }
}

TEST_F(CliTest, WhatWasCompiledAndNotKeptSaysWhyAndWhatToDo) {
  const std::string file = write("f.c", kSource);
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::Artifact answer;  // without a path
                      answer.add_warnings("something else");
                      answer.add_warnings("not kept in the store: a header changed while it was compiled");
                      FakeDaemon::send_artifact(events, FakeDaemon::artifact("f"), answer);
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", file});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.out, "");
  EXPECT_THAT(done.err, HasSubstr("compiled, but not kept in the store: a header changed while it was compiled"));
  EXPECT_THAT(done.err, HasSubstr("-o FILE"));
  EXPECT_THAT(done.err, Not(HasSubstr("cannot be written")));
  EXPECT_THAT(done.err, HasSubstr("warning: something else"));
  EXPECT_THAT(done.err, Not(HasSubstr("warning: not kept"))) << "said once";
  // The bytes are as good as ever.
  const std::string copy = directory.path() + "/copy.so";
  EXPECT_EQ(jitc({"submit", "-o", copy, file}).exit_code, 0);
  EXPECT_EQ(read(copy), FakeDaemon::artifact("f"));
}

TEST_F(CliTest, WhatWasTriedIsToldAndOtherFlagsAreWarnedOf) {
  const std::string file = write("f.c", kSource);
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::Artifact answer;  // without a path
                      answer.set_degraded(true);
                      answer.add_rungs("out of memory: tried again alone");
                      answer.add_rungs("out of memory: compiled with -O1 instead of -O0 alone");
                      answer.add_warnings("not kept in the store: compiled with -O1 instead of -O0");
                      FakeDaemon::send_artifact(events, FakeDaemon::artifact("f"), answer);
                      return grpc::Status::OK;
                    }});
  const std::string copy = directory.path() + "/copy.so";
  const auto done = jitc({"submit", "--json", "-o", copy, file});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(read(copy), FakeDaemon::artifact("f"));
  EXPECT_THAT(done.err, HasSubstr("note: out of memory: tried again alone"));
  EXPECT_THAT(done.err, HasSubstr("note: out of memory: compiled with -O1 instead of -O0 alone"));
  EXPECT_THAT(done.err, HasSubstr("warning: not kept in the store: compiled with -O1 instead of -O0"));
  const auto object = json::parse(done.out);
  EXPECT_EQ(object["degraded"], true);
  EXPECT_EQ(object["rungs"].size(), 2U);
  const auto without = jitc({"submit", file});  // no file to name
  EXPECT_EQ(without.exit_code, 7);
  EXPECT_THAT(without.err, HasSubstr("compiled, but not kept in the store: compiled with -O1 instead of -O0"));
  EXPECT_THAT(without.err, HasSubstr("-o FILE"));
}

TEST_F(CliTest, AFailureSaysWhatWasTriedAndWhenToAskAgain) {
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      auto& failure = *event.mutable_finished()->mutable_failure();
                      failure.set_kind(v1::OUT_OF_MEMORY);
                      failure.add_rungs("tried again alone");
                      failure.set_retry_after_seconds(12);
                      events.Write(event);
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", "--json", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 5);
  EXPECT_THAT(done.err, HasSubstr("before: tried again alone"));
  EXPECT_EQ(json::parse(done.out)["error"]["retry_after_seconds"], 12);
  EXPECT_EQ(daemon.compiles(), 1);  // when is the caller's to decide
}

TEST_F(CliTest, SeveralFilesAreAskedForAtOnceAndAnsweredInOrder) {
  constexpr int kFiles = 12;
  std::latch all_there(kFiles);
  std::atomic<int> place = 0;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      all_there.arrive_and_wait();  // passes only when all files are asked for at the same time
                      ++place;
                      v1::Artifact answer;
                      answer.set_path("/p/" + request.name().substr(request.name().rfind('/') + 1));
                      FakeDaemon::send_artifact(events, "", answer);
                      return grpc::Status::OK;
                    }});
  std::vector<std::string> arguments = {"submit", "--timeout=300"};
  std::string expected;
  for (int i = 0; i < kFiles; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i)) + ".c";
    arguments.push_back(write(name, "int " + name.substr(0, 1) + ";"));
    expected += "/p/" + name + "\n";
  }
  const auto done = jitc(arguments);
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(done.out, expected);
}

TEST_F(CliTest, TheExitCodeIsThatOfTheFirstFileThatFailed) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      if (request.origin() == "good") {
                        v1::Artifact answer;
                        answer.set_path("/good.so");
                        FakeDaemon::send_artifact(events, "", answer);
                        return grpc::Status::OK;
                      }
                      v1::CompileEvent event;
                      auto& failure = *event.mutable_finished()->mutable_failure();
                      failure.set_kind(request.origin() == "large" ? v1::OUT_OF_MEMORY : v1::INVALID_SOURCE);
                      failure.set_message("it is " + request.origin());
                      events.Write(event);
                      return grpc::Status::OK;
                    }});
  const std::string good = write("good.c", "good"), large = write("large.c", "large"), bad = write("bad.c", "bad");
  const auto done = jitc({"submit", good, large, bad, good});
  EXPECT_EQ(done.exit_code, 5);
  EXPECT_EQ(done.out, "/good.so\n/good.so\n");
  EXPECT_THAT(done.err, HasSubstr("it is large"));
  EXPECT_THAT(done.err, HasSubstr("it is bad"));
  EXPECT_EQ(jitc({"submit", good, bad, large}).exit_code, 1);
  const auto as_json = jitc({"submit", "--json", good, bad});
  EXPECT_EQ(std::ranges::count(as_json.out, '\n'), 2);
}

TEST_F(CliTest, FileNamesMayHoldAnythingAndReachNoTerminal) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      auto& failure = *event.mutable_finished()->mutable_failure();
                      failure.set_kind(v1::INVALID_SOURCE);
                      failure.set_message("it was asked for");
                      auto& diagnostic = *failure.add_diagnostics();
                      diagnostic.set_severity("error");
                      diagnostic.set_excerpt("\x1b[31m" + request.origin());
                      events.Write(event);
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", write("gr\xf6sse\x1b[2J.c", kSource)});
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_EQ(daemon.compiles(), 1);
  EXPECT_THAT(done.err, HasSubstr("it was asked for"));
  EXPECT_THAT(done.err, HasSubstr("gr?sse?[2J.c"));
  EXPECT_EQ(done.err.find('\x1b'), std::string::npos) << done.err;
}

TEST_F(CliTest, AFlagThatIsNotUtf8IsAnErrorOfUse) {
  FakeDaemon daemon(socket, {});
  const auto done = jitc({"submit", "--flag=-DX=\xff", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 2) << done.err;
  EXPECT_THAT(done.err, HasSubstr("not UTF-8"));
  EXPECT_THAT(done.err, HasSubstr("-DX=?"));
  EXPECT_EQ(daemon.connections(), 0);
}

TEST_F(CliTest, WithoutADaemonItSaysSoWhenNoneMayBeStarted) {
  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, HasSubstr("UNREACHABLE: " + directory.path() + "/f.c: " + socket)) << "which file, and where";
  EXPECT_THAT(done.err, HasSubstr("JITC_AUTOSTART"));
  EXPECT_THAT(done.err, HasSubstr("jitc daemon start"));
  EXPECT_EQ(jitc({"status"}).exit_code, 3);
  EXPECT_EQ(jitc({"stats"}).exit_code, 3);
  EXPECT_EQ(jitc({"daemon", "status"}).exit_code, 3);
  EXPECT_EQ(jitc({"daemon", "stop"}).exit_code, 0);
}

TEST_F(CliTest, WrongUsageIsTwo) {
  const std::string file = write("f.c", kSource);
  const std::vector<std::vector<std::string>> wrong = {{},
                                                       {"fetch"},
                                                       {"submit"},
                                                       {"submit", "--frobnicate", file},
                                                       {"submit", "--timeout=-1", file},
                                                       {"submit", "--timeout=nan", file},
                                                       {"submit", "--timeout=inf", file},
                                                       {"daemon", "start", "--timeout=nan"},
                                                       {"submit", directory.path() + "/absent.c"},
                                                       {"submit", "-o", "x.so", file, file},
                                                       {"submit", "--share=maybe", file},
                                                       {"cache"},
                                                       {"cache", "show", "0123"}};
  for (const auto& arguments : wrong) {
    const auto done = jitc(arguments);
    EXPECT_EQ(done.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_NE(done.err, "") << ::testing::PrintToString(arguments);
    EXPECT_EQ(done.out, "") << ::testing::PrintToString(arguments);
  }
  EXPECT_EQ(jitc({"submit", "--help"}).exit_code, 0);
  EXPECT_THAT(jitc({"submit", "--help"}).out, HasSubstr("out of memory"));
}

TEST_F(CliTest, TimeoutIsTheTotalPatience) {
  std::latch over(1);
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events&) {
                      over.wait();
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", "--timeout=0.3", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 6);
  EXPECT_THAT(done.err, HasSubstr("TIMED_OUT"));
  EXPECT_THAT(done.err, HasSubstr("within --timeout 0.3 ")) << "what the user gave, not what was left of it";
  over.count_down();
}

TEST_F(CliTest, ProgressLinesNamePhaseAndPlace) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent queued;
                      queued.mutable_queued()->set_place(4);
                      while (events.Write(queued)) {
                      }
                      return grpc::Status::OK;
                    }});
  auto with_progress = environment;
  with_progress["JITC_PROGRESS"] = "1";
  const std::string file = write("f.c", kSource);
  Process told({JITC_BIN_DIR "/jitc", "submit", file}, with_progress);
  EXPECT_TRUE(told.wait_for_error_text("jitc: " + file + ": queued, place 4, "));
  told.signal(SIGINT);
  EXPECT_THAT(told.wait().err, ::testing::MatchesRegex("(jitc: .*: queued, place 4, [0-9]+ s\n)+(.|\n)*"));
  EXPECT_THAT(jitc({"submit", "--timeout=1.2", file}).err, Not(HasSubstr("queued"))) << "standard error is no terminal";
}

TEST_F(CliTest, AnInterruptCancelsTheRequest) {
  std::promise<void> began, cancelled;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      began.set_value();
                      while (events.Write(v1::CompileEvent())) {
                      }
                      cancelled.set_value();
                      return grpc::Status::OK;
                    }});
  Process process({JITC_BIN_DIR "/jitc", "submit", write("f.c", kSource)}, environment);
  began.get_future().wait();
  process.signal(SIGINT);
  EXPECT_EQ(process.wait().exit_code, 9);
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(CliTest, WarningsGoToStandardError) {
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::Artifact answer;
                      answer.set_path("/p.so");
                      answer.add_warnings("the store is full");
                      FakeDaemon::send_artifact(events, "", answer);
                      return grpc::Status::OK;
                    }});
  const auto done = jitc({"submit", write("f.c", kSource)});
  EXPECT_EQ(done.out, "/p.so\n");
  EXPECT_THAT(done.err, HasSubstr("warning: the store is full"));
}

TEST_F(CliTest, StatsAreFlatJson) {
  FakeDaemon daemon(socket, {.counters = {{"requests", 5'000'000'000}, {"hits", 2}}});
  const auto done = jitc({"stats", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(json::parse(done.out), (json{{"requests", 5'000'000'000}, {"hits", 2}}));
  EXPECT_THAT(jitc({"stats"}).out, HasSubstr("requests                  5000000000  requests of every kind"));
}

TEST_F(CliTest, CacheListsShowsAndVerifies) {
  ASSERT_TRUE(common::write_identity(runtime, identity));
  const std::string other = "int g(void) { return 2; }\n";
  put(kSource, "first.c");
  const std::string second = put(other, "second.c");
  const auto listed = jitc({"cache", "ls"});
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_THAT(listed.out, HasSubstr(key_of(kSource).hex()));
  EXPECT_THAT(listed.out, HasSubstr("first.c\n"));
  EXPECT_THAT(listed.out, HasSubstr("second.c\n"));
  const auto as_json = jitc({"cache", "ls", "--json"});
  EXPECT_EQ(std::ranges::count(as_json.out, '\n'), 2);
  EXPECT_EQ(json::parse(as_json.out.substr(0, as_json.out.find('\n')))["layer"], store);

  const auto shown = jitc({"cache", "show", key_of(kSource).hex().substr(0, 12)});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_EQ(json::parse(shown.out)["name"], "first.c");

  const auto good = jitc({"cache", "verify"});
  EXPECT_EQ(good.exit_code, 0);
  EXPECT_THAT(good.err, HasSubstr("2 good, 0 corrupt, 0 unreadable"));
  std::fstream file(second, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(5);
  file.put('X');
  file.close();
  const auto bad = jitc({"cache", "verify"});
  EXPECT_EQ(bad.exit_code, 7);
  EXPECT_EQ(bad.out, second + "\n");
  EXPECT_EQ(jitc({"cache", "show", key_of(other).hex()}).exit_code, 7);
  EXPECT_EQ(jitc({"cache", "verify", "--store", directory.path() + "/other"}).exit_code, 0);
}

TEST_F(CliTest, ConfigSaysWhereAValueCameFrom) {
  fs::create_directories(directory.path() + "/.config/jitc");
  std::ofstream(directory.path() + "/.config/jitc/jitc.toml") << "cc = \"gcc\"\n";
  const auto done = jitc({"config", "--json"});
  ASSERT_EQ(done.exit_code, 0) << done.err;
  const auto object = json::parse(done.out);
  EXPECT_EQ(object["store"]["value"], store);
  EXPECT_EQ(object["store"]["origin"], "JITC_STORE");
  EXPECT_EQ(object["cc"]["value"], "gcc");
  EXPECT_THAT(object["cc"]["origin"].get<std::string>(), HasSubstr("jitc.toml"));
  EXPECT_EQ(object["share"]["origin"], "default");
  EXPECT_EQ(json::parse(jitc({"config", "--json", "--runtime-dir=/r"}).out)["runtime_dir"]["origin"], "--runtime-dir");
  EXPECT_THAT(jitc({"config"}).out, HasSubstr("(JITC_STORE)"));
}

TEST_F(CliTest, AWrongSettingNamesItself) {
  auto wrong = environment;
  wrong["JITC_SHARE"] = "maybe";
  const auto done = run_in(wrong, {"submit", write("f.c", kSource)});
  EXPECT_EQ(done.exit_code, 2);
  EXPECT_THAT(done.err, HasSubstr("JITC_SHARE"));
  EXPECT_THAT(done.err, HasSubstr("maybe"));
}

// jitc looks for jitcd beside itself: here a stand-in that does as told.
class AutoStartTest : public CliTest {
 protected:
  AutoStartTest() {
    fs::create_directory(directory.path() + "/bin");
    fs::copy_file(JITC_BIN_DIR "/jitc", directory.path() + "/bin/jitc");
    environment["JITC_AUTOSTART"] = "";
  }
  testing::Finished submit_with_jitcd(const std::string& script, const std::vector<std::string>& more = {}) {
    const std::string path = write("bin/jitcd", "#!/bin/sh\n" + script + "\n");
    fs::permissions(path, fs::perms::owner_all);
    std::vector<std::string> argv = {directory.path() + "/bin/jitc", "submit", write("f.c", kSource)};
    argv.insert(argv.end(), more.begin(), more.end());
    return testing::run(argv, environment);
  }
};

TEST_F(AutoStartTest, TheReasonOfAStartThatFailedIsTheError) {
  const auto done = submit_with_jitcd("echo 'the store is writable by others' >&2; exit 4");
  EXPECT_EQ(done.exit_code, 4);
  EXPECT_THAT(done.err, HasSubstr("the store is writable by others"));
  EXPECT_EQ(submit_with_jitcd("exit 70").exit_code, 3);
}

TEST_F(AutoStartTest, AMissingJitcdIsNamed) {
  const auto done = testing::run({directory.path() + "/bin/jitc", "submit", write("f.c", kSource)}, environment);
  EXPECT_EQ(done.exit_code, 3);
  EXPECT_THAT(done.err, HasSubstr(directory.path() + "/bin/jitcd"));
}

TEST_F(AutoStartTest, AStartThatHangsEndsWithTheTimeout) {
  const auto done = submit_with_jitcd("echo $$ > $JITC_STORE.pid; exec sleep 1000", {"--timeout=2"});
  EXPECT_EQ(done.exit_code, 6);
  const int pid = std::stoi(read(store + ".pid"));
  EXPECT_NE(::kill(pid, 0), 0) << "what was started is gone";
}

TEST_F(AutoStartTest, TheDaemonsOutputStreamsAreNotTheCommands) {
  // The sleeper holds what jitcd was given; the command's pipes would stay open if those were it.
  const auto done = submit_with_jitcd("sleep 1000 & echo $! > $JITC_STORE.pid; exit 4");
  EXPECT_EQ(done.exit_code, 4);
  ::kill(std::stoi(read(store + ".pid")), SIGKILL);
}

// Sets this thread's affinity, which what it starts inherits, and puts it back.
class ScopedAffinity {
 public:
  explicit ScopedAffinity(const cpu_set_t& set) {
    ::sched_getaffinity(0, sizeof before_, &before_);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  ~ScopedAffinity() { ::sched_setaffinity(0, sizeof before_, &before_); }
  ScopedAffinity(const ScopedAffinity&) = delete;
  ScopedAffinity& operator=(const ScopedAffinity&) = delete;
  static cpu_set_t now() {
    cpu_set_t set;
    ::sched_getaffinity(0, sizeof set, &set);
    return set;
  }

 private:
  cpu_set_t before_;
};

TEST_F(AutoStartTest, TheDaemonMayUseEveryCpuOfTheCpuset) {
  cpu_set_t whole, one;
  std::memset(&whole, 0xff, sizeof whole);
  const ScopedAffinity unpinned(whole);
  whole = ScopedAffinity::now();  // the kernel keeps the CPUs of the cpuset
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &whole)) CPU_SET(cpu, &one);
  }
  const ScopedAffinity pinned(one);
  const std::string out = store + ".cpus";
  submit_with_jitcd("nproc > " + out + "; exit 4");
  EXPECT_EQ(read(out), std::to_string(CPU_COUNT(&whole)) + "\n");
}

}  // namespace
}  // namespace jitc
