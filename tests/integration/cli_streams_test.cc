// What goes into `jitc` and comes out of it: -o, standard input, standard output.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/fake_daemon.h"

namespace jitc {
namespace {

using testing::FakeDaemon;

// The source is in the store: no daemon is needed.
class CliStreamsTest : public testing::CommandTest {
 protected:
  CliStreamsTest() {
    EXPECT_TRUE(common::write_identity(runtime, identity));
    put(kSource, "f");
  }
  // `jitc` with a redirection in the shell's words.
  std::vector<std::string> redirected(const std::string& redirection, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"/bin/sh", "-c", "exec \"$0\" \"$@\" " + redirection, JITC_BIN_DIR "/jitc"});
    return arguments;
  }
  static std::vector<std::string> command(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), JITC_BIN_DIR "/jitc");
    return arguments;
  }
  // More than a pipe holds: when this has been written, the reader is at work.
  static void fill(const common::Fd& pipe) {
    const int capacity = ::fcntl(pipe.get(), F_GETPIPE_SZ);
    ASSERT_GT(capacity, 0);
    ASSERT_TRUE(common::write_all(pipe.get(), std::string(2 * static_cast<std::size_t>(capacity), ' '), "pipe"));
  }

  const std::string file = write("f.c", kSource);
  const std::string bytes = artifact(key_of(kSource), "f");
};

TEST_F(CliStreamsTest, WhatIsNoRegularFileIsWrittenThrough) {
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const common::Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const auto done = jitc({"submit", "-o", pipe, file});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_TRUE(fs::is_fifo(pipe)) << "a device would be destroyed as well";
  std::string got(bytes.size() + 1, '\0');
  const ssize_t size = ::read(reader.get(), got.data(), got.size());
  EXPECT_EQ(got.substr(0, size < 0 ? 0 : static_cast<std::size_t>(size)), bytes);
}

TEST_F(CliStreamsTest, APipeThatNobodyReadsIsAnErrorAndOneThatIsNotReadWaitsForTheTimeout) {
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Process unread(command({"submit", "-o", pipe, file}), environment);
  const auto refused = unread.wait();
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("nobody reads it"));
  EXPECT_THAT(refused.err, HasSubstr("start the reader"));
  // A reader that stopped: the pipe is full.
  const common::Fd reader(::open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const common::Fd writer(::open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  while (::write(writer.get(), bytes.data(), 1) > 0) {
  }
  Process waiting(command({"submit", "--timeout=0.2", "-o", pipe, file}), environment);
  const auto late = waiting.wait();
  EXPECT_EQ(late.exit_code, 6) << late.err;
  EXPECT_THAT(late.err, HasSubstr("within --timeout 0.2"));
}

TEST_F(CliStreamsTest, StandardOutputAndDevicesAreWrittenThrough) {
  const auto piped = testing::run(redirected("| cat", {"submit", "-o", "/dev/stdout", file}), environment);
  EXPECT_EQ(piped.out, bytes + "/dev/stdout\n") << piped.err;
  EXPECT_EQ(jitc({"submit", "-o", "/dev/null", file}).exit_code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(CliStreamsTest, ASymlinkStaysAndItsTargetIsReplaced) {
  fs::create_directory(directory.path() + "/to");
  const std::string link = directory.path() + "/link.so", target = directory.path() + "/to/target.so";
  fs::create_symlink("to/middle.so", link);
  fs::create_symlink("target.so", directory.path() + "/to/middle.so");
  for (const char* before : {"", "old"}) {  // it may lead nowhere yet
    if (*before != '\0') write("to/target.so", before);
    EXPECT_EQ(jitc({"submit", "-o", link, file}).exit_code, 0);
    EXPECT_TRUE(fs::is_symlink(link));
    EXPECT_FALSE(fs::is_symlink(target));
    EXPECT_EQ(read(target), bytes);
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.path() + "/to"), {}), 2) << "no temporary file is left";
}

TEST_F(CliStreamsTest, AnOutputThatCannotBeWrittenIsWrongUsageBeforeAnyCompile) {
  FakeDaemon daemon(socket, {});
  const std::string loop = directory.path() + "/loop";
  fs::create_symlink("loop", loop);
  for (const std::string& out : {std::string(), directory.path(), directory.path() + "/absent/x.so", loop}) {
    for (const char* more : {"--flag=-O2", "--flag=-O7"}) {
      const auto done = jitc({"submit", more, "-o", out, file});
      EXPECT_EQ(done.exit_code, 2) << "-o '" << out << "': " << done.err;
      EXPECT_NE(done.err, "");
      EXPECT_EQ(done.out, "");
    }
  }
  EXPECT_EQ(daemon.compiles(), 0);
}

TEST_F(CliStreamsTest, AnInterruptWhileStandardInputIsReadCancels) {
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const int number : {SIGINT, SIGTERM}) {
    Process process(redirected("<" + pipe, {"submit", "-"}), environment);
    const common::Fd writer(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
    fill(writer);
    process.signal(number);
    const auto done = process.wait();
    EXPECT_EQ(done.exit_code, 9) << done.err;
    EXPECT_THAT(done.err, HasSubstr("CANCELLED"));
  }
}

TEST_F(CliStreamsTest, TheTimeoutCoversStandardInputAndIsNamedAsGiven) {
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  Process process(redirected("<" + pipe, {"submit", "--timeout=0.50", "-"}), environment);
  const common::Fd writer(::open(pipe.c_str(), O_WRONLY | O_CLOEXEC));
  const auto done = process.wait();
  EXPECT_EQ(done.exit_code, 6);
  EXPECT_THAT(done.err, HasSubstr("within --timeout 0.5 "));
}

TEST_F(CliStreamsTest, StandardInputIsASourceLikeAFile) {
  put(kSource, "<stdin>");
  EXPECT_EQ(jitc({"submit", "-"}, kSource).out, jitc({"submit", file}).out);
}

TEST_F(CliStreamsTest, ResultsThatCannotBeWrittenAreNoSuccess) {
  FakeDaemon daemon(socket, {.counters = {{"requests", 1}}});
  const std::vector<std::vector<std::string>> all = {
      {"submit", file},
      {"submit", "--json", file},
      {"stats"},
      {"stats", "--json"},
      {"cache", "ls"},
      {"cache", "ls", "--json"},
      {"cache", "show", key_of(kSource).hex()},
      {"config"},
      {"share", file},
      {"lower", JITC_SOURCE_DIR "/tests/data/corpus/poisson_nl_2d/problem.json"},
      {"version"},
      {"--help"}};
  for (const auto& arguments : all) {
    const auto done = testing::run(redirected(">/dev/full", arguments), environment);
    EXPECT_EQ(done.exit_code, 2) << ::testing::PrintToString(arguments);
    EXPECT_THAT(done.err, HasSubstr("standard output")) << ::testing::PrintToString(arguments);
  }
}

TEST_F(CliStreamsTest, AFileThatCannotBeReadDoesNotTakeTheOthersResults) {
  const std::string absent = directory.path() + "/absent.c";
  const auto done = jitc({"submit", "--json", absent, file, directory.path()});
  EXPECT_EQ(done.exit_code, 2);
  std::istringstream lines(done.out);
  std::vector<json> objects;
  for (std::string line; std::getline(lines, line);) objects.push_back(json::parse(line));
  ASSERT_EQ(objects.size(), 3u);
  EXPECT_EQ(objects[0]["name"], absent);
  EXPECT_EQ(objects[0]["error"]["kind"], "USAGE");
  EXPECT_EQ(objects[1]["key"], key_of(kSource).hex());
  EXPECT_EQ(objects[2]["error"]["kind"], "USAGE");
  const auto paths = jitc({"submit", absent, file});
  EXPECT_EQ(paths.exit_code, 2);
  EXPECT_EQ(paths.out, common::artifact_path(store, key_of(kSource)) + "\n");
  EXPECT_THAT(paths.err, HasSubstr(absent));
}

TEST_F(CliStreamsTest, AStoreOtherThanTheDaemonsIsNamedOnce) {
  environment["JITC_STORE"] = directory.path() + "/./store/";
  EXPECT_EQ(jitc({"submit", file, file}).err, "") << "the same store, spelt differently";
  environment["JITC_STORE"] = directory.path() + "/mine";
  const auto done = jitc({"submit", file, file});
  EXPECT_EQ(done.exit_code, 0);
  EXPECT_EQ(std::ranges::count(done.err, '\n'), 1) << done.err;
  EXPECT_THAT(done.err, HasSubstr("uses the store " + store + ", not " + directory.path() + "/mine (JITC_STORE)"));
  EXPECT_THAT(jitc({"cache", "ls"}).err, HasSubstr("uses the store " + store));
}

TEST_F(CliStreamsTest, VerifySaysWhatItCouldNotRead) {
  const std::string other = "int g(void) { return 2; }\n";
  const std::string unreadable = put(other, "g.c");
  fs::remove(unreadable);
  fs::create_symlink(file, unreadable);  // no entry is a symlink
  const auto done = jitc({"cache", "verify"});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_EQ(done.out, "") << "it is not known to be corrupt";
  EXPECT_THAT(done.err, HasSubstr(unreadable));
  EXPECT_THAT(done.err, HasSubstr("1 good, 0 corrupt, 1 unreadable"));
}

TEST_F(CliStreamsTest, AStoreThatDoesNotExistHoldsNothing) {
  const std::string absent = directory.path() + "/no-store";
  for (const char* what : {"verify", "ls"}) {
    const auto done = jitc({"cache", what, "--store", absent});
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_THAT(done.err, HasSubstr(absent + ": there is no store yet"));
  }
  const auto no_folder = jitc({"cache", "verify", "--store", file});
  EXPECT_EQ(no_folder.exit_code, 7) << no_folder.err;
}

}  // namespace
}  // namespace jitc
