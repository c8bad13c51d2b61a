// The daemon's client against a daemon that misbehaves as told, over a real socket.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <latch>
#include <optional>

#include "client/rpc/daemon.h"
#include "common/digest.h"
#include "common/identity.h"
#include "common/runtime_dir.h"
#include "tests/support/fake_daemon.h"
#include "tests/support/temporary_directory.h"

namespace jitc {
namespace {

using common::ErrorKind;
using ::testing::ElementsAre;
using testing::FakeDaemon;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kPatience(60);  // of a test: what has not come by then does not come

struct Answer {
  std::optional<common::Error> error;
  std::string key, path, bytes;
  bool hit = false;
  bool merged = false;
  std::vector<std::string> warnings;
  std::vector<rpc::Progress> progress;
  ErrorKind kind() const { return error ? error->kind : ErrorKind{}; }
  std::string text() const { return error ? common::to_line(*error) : "no error"; }
};

class RpcTest : public ::testing::Test {
 protected:
  Answer compile(rpc::Daemon& daemon, rpc::Daemon::Options options = {},
                 std::function<bool(const rpc::Progress&)> progress = {}) {
    common::Request request;
    request.origin = source;
    request.name = request_name;
    Answer answer;
    int answers = 0;
    rpc::Daemon::Events events;
    events.progress = [&](const rpc::Progress& now) {
      answer.progress.push_back(now);
      return !progress || progress(now);
    };
    events.reply = [&](const rpc::Reply& reply) {
      ++answers;
      answer.key = reply.key;
      answer.path = reply.path;
      answer.bytes = reply.bytes;
      answer.hit = reply.hit;
      answer.merged = reply.merged;
    };
    events.failure = [&](const common::Error& error) {
      ++answers;
      answer.error = error;
    };
    events.warning = [&](std::string_view text) { answer.warnings.emplace_back(text); };
    events.start = may_start;
    daemon.compile(request, options, events);
    EXPECT_EQ(answers, 1);
    return answer;
  }

  std::unique_ptr<rpc::Daemon, decltype(&jitc_rpc_close)> client() {
    return {jitc_rpc_open(rpc::interface_version(common::build_version()), socket.c_str()), &jitc_rpc_close};
  }

  static FakeDaemon::Script answering(const std::string& payload, const v1::Artifact& artifact = {}) {
    return {.compile = [payload, artifact](const v1::CompileRequest&, FakeDaemon::Events& events) {
      FakeDaemon::send_artifact(events, FakeDaemon::artifact(payload), artifact);
      return grpc::Status::OK;
    }};
  }

  // A request that runs, as far as its client knows.
  static void take_on(FakeDaemon::Events& events) {
    v1::CompileEvent event;
    event.mutable_accepted()->set_flight(1);
    events.Write(event);
    event.mutable_started()->set_attempt(1);
    events.Write(event);
  }
  static void say_draining(FakeDaemon::Events& events) {
    v1::CompileEvent event;
    event.mutable_finished()->mutable_failure()->set_kind(v1::DRAINING);
    events.Write(event);
  }

  std::string request_name = "test.c";
  std::function<bool()> may_start;
  testing::TemporaryDirectory directory;
  std::string socket = directory.path() + "/jitcd.sock";
  std::string source = "int f(void) { return 1; }\n";
};

TEST_F(RpcTest, AnotherInterfaceVersionIsRefused) {
  EXPECT_EQ(jitc_rpc_open(rpc::interface_version(common::build_version()) + 1, socket.c_str()), nullptr);
}

TEST_F(RpcTest, BytesThatCameInChunksAreWholeAndInOrder) {
  std::string payload;
  for (int i = 0; i < 300'000; ++i) payload += std::to_string(i);
  const std::string bytes = FakeDaemon::artifact(payload);
  v1::Artifact artifact;
  artifact.set_path("/store/x.so");
  artifact.set_hit(true);
  artifact.add_warnings("the store is nearly full");
  std::string seen;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      seen = request.origin();
                      FakeDaemon::send_artifact(events, bytes, artifact, 100'000);
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client());
  ASSERT_FALSE(answer.error) << answer.text();
  EXPECT_TRUE(answer.bytes == bytes);
  EXPECT_EQ(answer.path, "/store/x.so");
  EXPECT_EQ(answer.key, common::sha256("key").hex());
  EXPECT_TRUE(answer.hit);
  EXPECT_FALSE(answer.merged);
  EXPECT_THAT(answer.warnings, ElementsAre("the store is nearly full"));
  EXPECT_EQ(seen, source);
}

TEST_F(RpcTest, SourcesAndArtifactsAboveFourMegabytesPass) {
  source.assign(9 << 20, ' ');
  const std::string bytes = FakeDaemon::artifact(std::string(10 << 20, 'x'));
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      EXPECT_EQ(request.origin().size(), source.size());
                      FakeDaemon::send_artifact(events, bytes, {}, bytes.size());
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client());
  ASSERT_FALSE(answer.error) << answer.text();
  EXPECT_EQ(answer.bytes.size(), bytes.size());
}

TEST_F(RpcTest, WrongDigestAndMissingBytesAreCorrupt) {
  v1::Artifact wrong;
  wrong.set_digest(common::sha256("something else").hex());
  v1::Artifact longer;
  longer.set_size(1000);
  v1::Artifact other;
  other.set_key(common::sha256("another key").hex());
  for (const auto& artifact : {wrong, longer, other}) {
    FakeDaemon daemon(socket, answering("bytes", artifact));
    const auto answer = compile(*client());
    EXPECT_EQ(answer.kind(), ErrorKind::kCorrupt) << answer.text();
  }
}

TEST_F(RpcTest, ATypedFailureKeepsAllItsParts) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      auto& failure = *event.mutable_finished()->mutable_failure();
                      failure.set_kind(v1::OUT_OF_MEMORY);
                      failure.set_message("too large");
                      failure.set_remedy("give more");
                      failure.set_needed_bytes(5'000'000'000);
                      failure.set_budget_bytes(1'000'000'000);
                      failure.set_tries(2);
                      auto& diagnostic = *failure.add_diagnostics();
                      diagnostic.set_severity("error");
                      diagnostic.set_line(3);
                      diagnostic.set_column(7);
                      diagnostic.set_message("no");
                      events.Write(event);
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client());
  ASSERT_EQ(answer.kind(), ErrorKind::kOutOfMemory);
  EXPECT_EQ(answer.error->message, "too large");
  EXPECT_EQ(answer.error->remedy, "give more");
  EXPECT_EQ(answer.error->needed_bytes, 5'000'000'000u);
  EXPECT_EQ(answer.error->budget_bytes, 1'000'000'000u);
  EXPECT_EQ(answer.error->tries, 2u);
  EXPECT_THAT(answer.error->diagnostics, ElementsAre(common::Diagnostic{"error", 3, 7, "no", ""}));
}

TEST_F(RpcTest, NobodyThereIsUnreachable) {
  const auto answer = compile(*client());
  EXPECT_EQ(answer.kind(), ErrorKind::kUnreachable);
  EXPECT_EQ(answer.error->thing, socket);
}

TEST_F(RpcTest, ADaemonThatIsOnItsWayIsWaitedFor) {
  const std::string job = directory.path() + "/jobs/7.n1";  // made by the daemon
  socket = job + "/jitcd.sock";
  std::unique_ptr<FakeDaemon> daemon;
  const auto answer = compile(*client(), {.awaits_daemon = true}, [&](const rpc::Progress& now) {
    EXPECT_EQ(now.phase, daemon ? now.phase : rpc::Progress::Phase::kConnecting);
    if (!daemon) {
      std::filesystem::create_directories(job);
      daemon = std::make_unique<FakeDaemon>(socket, answering("late"));
    }
    return true;
  });
  ASSERT_FALSE(answer.error) << answer.text();
  EXPECT_EQ(answer.bytes, FakeDaemon::artifact("late"));
  EXPECT_THAT(answer.warnings, ::testing::IsEmpty());
}

TEST_F(RpcTest, ADaemonThatDoesNotComeIsUnreachableWithinTheSilenceAllowed) {
  const auto answer = compile(*client(), {.silence_seconds = 1.5, .awaits_daemon = true});
  EXPECT_EQ(answer.kind(), ErrorKind::kUnreachable) << answer.text();
  EXPECT_THAT(answer.text(), HasSubstr("none came within 2 s"));
}

TEST_F(RpcTest, AStoppedDaemonTimesOut) {
  // As after SIGSTOP: the kernel completes the connection, nobody reads.
  const common::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = common::socket_address(socket);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  ASSERT_EQ(::listen(listener.get(), 0), 0);
  const auto first = client();
  EXPECT_EQ(compile(*first, {.silence_seconds = 0.2}).kind(), ErrorKind::kTimedOut);
  // And when not even the backlog has room, so that connecting itself waits.
  std::vector<common::Fd> backlog;
  for (auto more = common::connect_own(socket); more; more = common::connect_own(socket))
    backlog.push_back(std::move(*more));
  const auto answer = compile(*client(), {.silence_seconds = 2.5});
  EXPECT_EQ(answer.kind(), ErrorKind::kTimedOut);
  ASSERT_GE(answer.progress.size(), 1u) << "progress while connecting";
  EXPECT_EQ(answer.progress[0].phase, rpc::Progress::Phase::kConnecting);
}

TEST_F(RpcTest, SilenceTimesOutAndHeartbeatsDoNot) {
  std::latch over(1);
  FakeDaemon silent(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events&) {
                      over.wait();
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client(), {.silence_seconds = 0.3});
  EXPECT_EQ(answer.kind(), ErrorKind::kTimedOut);
  EXPECT_EQ(answer.error->thing, socket);
  over.count_down();
}

TEST_F(RpcTest, ACallLongerThanTheSilenceLimitLivesOnHeartbeats) {
  using Clock = std::chrono::steady_clock;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent beat;
                      beat.mutable_heartbeat()->set_place(3);
                      beat.mutable_heartbeat()->set_memory_bytes(77);
                      const auto end = Clock::now() + std::chrono::milliseconds(2500);
                      while (Clock::now() < end) events.Write(beat);
                      FakeDaemon::send_artifact(events, FakeDaemon::artifact("bytes"), {});
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client(), {.silence_seconds = 2});
  ASSERT_FALSE(answer.error) << answer.text();
  ASSERT_GE(answer.progress.size(), 1u);
  EXPECT_EQ(answer.progress[0].phase, rpc::Progress::Phase::kQueued);
  EXPECT_EQ(answer.progress[0].place, 3u);
  EXPECT_EQ(answer.progress[0].memory_bytes, 77u);
  EXPECT_GE(answer.progress[0].seconds, 1.0);
}

TEST_F(RpcTest, WhatAnotherNodeCompilesIsAPhaseOfItsOwn) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent beat;
                      beat.mutable_heartbeat()->set_elsewhere(true);
                      while (events.Write(beat)) {
                      }
                      return grpc::Status::OK;
                    }});
  const auto answer = compile(*client(), {}, [](const rpc::Progress&) { return false; });
  ASSERT_EQ(answer.progress.size(), 1u);
  EXPECT_EQ(answer.progress[0].phase, rpc::Progress::Phase::kElsewhere);
}

TEST_F(RpcTest, TheTotalLimitEndsABusyCall) {
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      while (events.Write(v1::CompileEvent())) {
                      }
                      return grpc::Status::OK;
                    }});
  EXPECT_EQ(compile(*client(), {.total_seconds = 0.3}).kind(), ErrorKind::kTimedOut);
}

TEST_F(RpcTest, GivingUpCancelsTheCall) {
  std::promise<void> cancelled;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent started;
                      started.mutable_started()->set_attempt(1);
                      while (events.Write(started)) {
                      }
                      cancelled.set_value();
                      return grpc::Status::OK;
                    }});
  const auto owner = client();
  const auto answer = compile(*owner, {}, [](const rpc::Progress&) { return false; });
  EXPECT_EQ(answer.kind(), ErrorKind::kCancelled);
  ASSERT_EQ(answer.progress.size(), 1u);
  EXPECT_EQ(answer.progress[0].phase, rpc::Progress::Phase::kCompiling);
  EXPECT_EQ(cancelled.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(RpcTest, ARestartedDaemonIsFoundAgain) {
  const auto owner = client();
  {
    FakeDaemon daemon(socket, answering("first"));
    EXPECT_EQ(compile(*owner).bytes, FakeDaemon::artifact("first"));
  }
  FakeDaemon daemon(socket, answering("second"));
  const auto answer = compile(*owner);
  ASSERT_FALSE(answer.error) << answer.text();
  EXPECT_EQ(answer.bytes, FakeDaemon::artifact("second"));
  EXPECT_EQ(compile(*owner).bytes, FakeDaemon::artifact("second"));
  EXPECT_EQ(daemon.connections(), 1);
  EXPECT_EQ(daemon.hellos(), 1) << "one per connection";
}

TEST_F(RpcTest, ADaemonThatGoesAwayDuringTheCallIsAskedAgain) {
  FakeDaemon* self = nullptr;
  std::atomic<int> calls = 0;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      if (++calls == 2) {
                        FakeDaemon::send_artifact(events, FakeDaemon::artifact("whole"), {});
                        return grpc::Status::OK;
                      }
                      v1::CompileEvent chunk;
                      chunk.set_chunk("half");
                      events.Write(chunk);
                      self->cut();
                      return grpc::Status::OK;
                    }});
  self = &daemon;
  const auto answer = compile(*client());
  ASSERT_FALSE(answer.error) << answer.text();
  EXPECT_EQ(answer.bytes, FakeDaemon::artifact("whole")) << "nothing of the first answer is kept";
  EXPECT_EQ(daemon.compiles(), 2);
  EXPECT_EQ(daemon.connections(), 2);
}

TEST_F(RpcTest, ADaemonThatEveryTryEndsIsAskedThreeTimesAndNoMore) {
  FakeDaemon* self = nullptr;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      take_on(events);
                      self->cut();
                      return grpc::Status::OK;
                    }});
  self = &daemon;
  const auto answer = compile(*client());
  EXPECT_EQ(answer.kind(), ErrorKind::kUnreachable);
  EXPECT_EQ(answer.error->tries, 3u);
  EXPECT_EQ(daemon.compiles(), 3);
  EXPECT_THAT(answer.warnings, ElementsAre(HasSubstr("try 2 of 3"), HasSubstr("try 3 of 3")));
}

// A daemon that takes one request on, and ends while its client waits.
class RestartTest : public RpcTest {
 protected:
  RestartTest()
      : daemon(std::make_unique<FakeDaemon>(
            socket, FakeDaemon::Script{.compile = [this](const v1::CompileRequest&, FakeDaemon::Events& events) {
              take_on(events);
              taken_on.set_value();
              over.wait();
              say_draining(events);
              return grpc::Status::OK;
            }})) {}

  std::future<Answer> start_compile(double silence_seconds) {
    auto answer = std::async(std::launch::async, [this, silence_seconds] {
      bool told = false;
      auto answered = compile(*client(), {.silence_seconds = silence_seconds}, [&](const rpc::Progress& now) {
        if (now.phase != rpc::Progress::Phase::kReconnecting) return true;
        if (!std::exchange(told, true)) reconnects.set_value(true);
        if (on_tick) on_tick();
        return true;
      });
      if (!told) reconnects.set_value(false);  // it will not any more
      return answered;
    });
    EXPECT_EQ(taken_on.get_future().wait_for(kPatience), std::future_status::ready) << "the daemon was not asked";
    return answer;
  }
  // As a daemon that dies at its start.
  void listen_for_one_connection() const {
    const common::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const auto address = common::socket_address(socket);
    ::unlink(socket.c_str());
    ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
    ASSERT_EQ(::listen(listener.get(), 8), 0);
    pollfd asked = {listener.get(), POLLIN, 0};
    ::poll(&asked, 1, 1000);  // nobody comes when the client has given up meanwhile
    ::unlink(socket.c_str());
  }
  void expect_that_it_reconnects() {
    auto known = reconnects.get_future();
    ASSERT_EQ(known.wait_for(kPatience), std::future_status::ready) << "the client neither reconnects nor gives up";
    EXPECT_TRUE(known.get()) << "the client gave up";
  }

  std::function<void()> on_tick;  // once a second, while it looks for another daemon
  std::promise<void> taken_on;
  std::promise<bool> reconnects;
  std::latch over{1};
  std::unique_ptr<FakeDaemon> daemon;
};

TEST_F(RestartTest, ACallThatWaitsIsSentToTheNextDaemon) {
  auto answer = start_compile(30);
  std::thread ends([&] { daemon.reset(); });  // the connection is cut before the call gets its last word
  expect_that_it_reconnects();
  over.count_down();
  ends.join();
  const FakeDaemon next(socket, answering("of the next one"));
  const auto got = answer.get();
  ASSERT_FALSE(got.error) << got.text();
  EXPECT_EQ(got.bytes, FakeDaemon::artifact("of the next one"));
  EXPECT_EQ(next.compiles(), 1);
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("try 2 of 3")));
}

TEST_F(RestartTest, SoIsOneWhoseDaemonIsToldToEnd) {
  // Whoever told it to end did not ask for another one.
  may_start = [] {
    ADD_FAILURE();
    return false;
  };
  auto answer = start_compile(30);
  ::unlink(socket.c_str());
  over.count_down();
  expect_that_it_reconnects();
  daemon.reset();
  const FakeDaemon next(socket, answering("of the next one"));
  const auto got = answer.get();
  ASSERT_FALSE(got.error) << got.text();
  EXPECT_EQ(next.compiles(), 1);
}

TEST_F(RestartTest, NobodyComesBackIsUnreachableWithinTheSilenceAllowed) {
  auto answer = start_compile(3);
  std::thread ends([&] { daemon.reset(); });
  const auto got = answer.get();
  over.count_down();
  ends.join();
  EXPECT_EQ(got.kind(), ErrorKind::kUnreachable) << got.text();
  EXPECT_THAT(got.text(), HasSubstr("no other came within 3 s"));
}

// Ticks come a second apart at least, however slow the machine is: more of them than seconds tell of a second wait.
TEST_F(RestartTest, OneThatComesAndGoesAgainProlongsNothing) {
  int ticks = 0;
  std::thread flap;
  on_tick = [&] {
    if (++ticks == 2) flap = std::thread([&] { listen_for_one_connection(); });
  };
  auto answer = start_compile(2.5);
  std::thread ends([&] { daemon.reset(); });
  const auto got = answer.get();
  over.count_down();
  ends.join();
  if (flap.joinable()) flap.join();
  EXPECT_EQ(got.kind(), ErrorKind::kUnreachable) << got.text();
  EXPECT_LE(ticks, 3);
}

TEST_F(RpcTest, ARefusalByADaemonThatDrainsIsTheAnswer) {
  FakeDaemon daemon(socket, {.compile = [](const v1::CompileRequest&, FakeDaemon::Events& events) {
                      v1::CompileEvent event;
                      event.mutable_accepted()->set_flight(1);
                      events.Write(event);
                      say_draining(events);
                      return grpc::Status::OK;
                    }});
  EXPECT_EQ(compile(*client()).kind(), ErrorKind::kDraining);
  EXPECT_EQ(daemon.compiles(), 1);
}

TEST_F(RpcTest, WhoCanStartADaemonDoesNotWaitForOne) {
  std::unique_ptr<FakeDaemon> daemon;
  int starts = 0;
  may_start = [&] {
    ++starts;
    daemon = std::make_unique<FakeDaemon>(socket, answering("started"));
    return true;
  };
  EXPECT_EQ(compile(*client()).bytes, FakeDaemon::artifact("started"));
  EXPECT_EQ(starts, 1);
  daemon.reset();
  may_start = [&] { return ++starts < 0; };
  EXPECT_EQ(compile(*client()).kind(), ErrorKind::kUnreachable);
  EXPECT_EQ(starts, 2);
}

TEST_F(RpcTest, AnotherProtocolVersionIsSkew) {
  FakeDaemon daemon(socket, {.hello =
                                 [](v1::HelloReply& reply) {
                                   reply.mutable_protocol()->set_oldest(7);
                                   reply.mutable_protocol()->set_newest(9);
                                   reply.set_version("99.1");
                                 },
                             .compile = answering("x").compile});
  const auto answer = compile(*client());
  EXPECT_EQ(answer.kind(), ErrorKind::kVersionSkew);
  EXPECT_THAT(answer.text(), HasSubstr("99.1"));
  EXPECT_THAT(answer.text(), HasSubstr("7 to 9"));
  EXPECT_EQ(daemon.compiles(), 0);
}

TEST_F(RpcTest, ANameNeedNotBeUtf8) {
  std::string name;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      name = request.name();
                      FakeDaemon::send_artifact(events, FakeDaemon::artifact("x"), {});
                      return grpc::Status::OK;
                    }});
  request_name = "gr\xf6sse.c";
  const auto answer = compile(*client());
  EXPECT_FALSE(answer.error) << answer.text();
  EXPECT_EQ(name, "gr?sse.c");
}

// Somebody listens, and never says a word.
TEST_F(RpcTest, ShortCallsKeepToTheirLimits) {
  const common::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto address = common::socket_address(socket);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  ASSERT_EQ(::listen(listener.get(), 8), 0);
  const auto owner = client();
  const rpc::Daemon::Limits brief{.seconds = 0.1}, given_up{.seconds = 60, .go_on = [] { return false; }};
  for (const auto& [limits, kind] : {std::pair(brief, ErrorKind::kTimedOut), {given_up, ErrorKind::kCancelled}}) {
    EXPECT_EQ(owner->drain(limits).error().kind, kind);
    EXPECT_EQ(owner->cancel(1, limits).error().kind, kind);
    EXPECT_EQ(owner->query("stats", limits).error().kind, kind);
  }
}

// A command that its caller runs: the daemon hears that the turn is over, and the call has ended by then.
TEST_F(RpcTest, ATurnEndsWithItsWork) {
  std::promise<void> over;
  FakeDaemon daemon(socket, {.compile = [&](const v1::CompileRequest& request, FakeDaemon::Events& events) {
                      EXPECT_TRUE(request.command().by_caller());
                      take_on(events);
                      while (events.Write(v1::CompileEvent())) {
                      }
                      over.set_value();
                      return grpc::Status::CANCELLED;
                    }});
  common::Command command;
  command.compiler = "/usr/bin/gcc";
  command.by_caller = true;
  int turns = 0;
  std::optional<common::Error> ended;
  rpc::Daemon::Events events;
  events.admitted = [&] { ++turns; };
  events.reply = [](const rpc::Reply&) { ADD_FAILURE() << "a turn has no result"; };
  events.failure = [&](const common::Error& error) { ended = error; };
  client()->run(command, "test.c", {}, events);
  EXPECT_EQ(turns, 1);
  ASSERT_TRUE(ended);
  EXPECT_EQ(ended->kind, ErrorKind::kCancelled) << common::to_line(*ended);
  EXPECT_EQ(ended->remedy, "");  // one says that the end was waited for in vain
  EXPECT_EQ(over.get_future().wait_for(kPatience), std::future_status::ready);
}

TEST_F(RpcTest, ADaemonOfAnOlderProtocolSaysSkewForCallsItLacks) {
  FakeDaemon daemon(socket, answering("x"));
  const auto drained = client()->drain({.seconds = 60});  // the fake has no Drain
  ASSERT_FALSE(drained);
  EXPECT_EQ(drained.error().kind, ErrorKind::kVersionSkew);
}

TEST_F(RpcTest, QueriesAreJson) {
  FakeDaemon daemon(socket, {.counters = {{"requests", 5'000'000'000}, {"hits", 2}}});
  const auto owner = client();
  const auto stats = owner->query("stats", {.seconds = 60});
  ASSERT_TRUE(stats) << common::to_line(stats.error());
  EXPECT_EQ(*stats, R"({"hits":2,"requests":5000000000})");
  const auto hello = owner->query("hello", {.seconds = 60});
  ASSERT_TRUE(hello);
  EXPECT_THAT(*hello, HasSubstr(R"("version":"fake")"));
  EXPECT_EQ(owner->query("weather", {.seconds = 60}).error().kind, ErrorKind::kUsage);
}

TEST_F(RpcTest, ManyThreadsShareOneClient) {
  FakeDaemon daemon(socket, answering("bytes"));
  const auto owner = client();
  std::vector<std::jthread> threads;
  std::atomic<int> good = 0;
  for (int i = 0; i < 16; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 5; ++j) good += compile(*owner).bytes == FakeDaemon::artifact("bytes");
    });
  threads.clear();
  EXPECT_EQ(good, 80);
  EXPECT_EQ(daemon.compiles(), 80);
}

// Somebody else's process listens on our path.
TEST_F(RpcTest, ASquattedSocketIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to play another user";
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const auto address = common::socket_address(socket);
  const pid_t child = ::fork();
  if (child == 0) {
    // Only system calls between fork and _exit: the parent has threads.
    const int listener = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool ok = ::bind(listener, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0;
    ok = ok && ::setgroups(0, nullptr) == 0 && ::setresuid(65533, 65533, 65533) == 0 && ::listen(listener, 8) == 0;
    const char byte = ok ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 'n';
  EXPECT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  const auto answer = compile(*client());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ready[0]);
  ::close(ready[1]);
  EXPECT_EQ(answer.kind(), ErrorKind::kRefused);
  EXPECT_THAT(answer.text(), HasSubstr("65533"));
}

}  // namespace
}  // namespace jitc
