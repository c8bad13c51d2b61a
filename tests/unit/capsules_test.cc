#include "daemon/service/capsules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include <csignal>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class CapsulesTest : public ::testing::Test {
 protected:
  static common::Digest key(int number) { return common::sha256(std::to_string(number)); }
  static Failure failure(int number, std::string text = "int f(void) { return x; }\n") {
    auto prepared = std::make_shared<Prepared>();
    prepared->request.origin = std::move(text);
    prepared->resolved.key = key(number);
    Failure failure;
    failure.prepared = std::move(prepared);
    failure.error = {common::ErrorKind::kInvalidSource, "failure " + std::to_string(number)};
    return failure;
  }
  static void date(const std::string& path, time_t second) {
    const timeval times[2] = {{second, 0}, {second, 0}};
    ASSERT_EQ(::utimes(path.c_str(), times), 0);
  }
  // As if they had been written one second after the other, long ago.
  void age(int number, int second) const { date(path(number), 1000 + second); }
  static time_t date_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
  }
  std::string path(int number) const { return folder + "/" + key(number).hex() + ".json"; }
  static unsigned mode_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }

  testing::TemporaryDirectory directory;
  std::string folder = directory.path() + "/capsules";
  Capsules capsules{folder, 3};
};

TEST_F(CapsulesTest, ArePrivateWhateverTheUmaskSays) {
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    const mode_t before = ::umask(mask);
    const auto present = capsules.keep(failure(1));
    ::umask(before);
    EXPECT_TRUE(present.contains(key(1)));
    EXPECT_EQ(mode_of(folder), 0700u);
    EXPECT_EQ(mode_of(path(1)), 0600u);
    fs::remove_all(folder);
  }
}

TEST_F(CapsulesTest, TheSameFailureReplacesItsOwn) {
  capsules.keep(failure(1, "first"));
  EXPECT_THAT(capsules.keep(failure(1, "second")), ElementsAre(key(1)));
  const auto read = common::read_capsule(path(1));
  ASSERT_TRUE(read) << common::to_line(read.error());
  EXPECT_EQ(read->request.origin, "second");
  EXPECT_EQ(capsules.path_of(key(1)), path(1));
}

TEST_F(CapsulesTest, TheOldestGoWhenThereAreTooMany) {
  for (int i = 1; i <= 3; ++i) {
    capsules.keep(failure(i));
    age(i, i);
  }
  capsules.keep(failure(1));  // now the newest
  const auto present = capsules.keep(failure(4));
  EXPECT_EQ(present, (std::set{key(1), key(3), key(4)}));
  EXPECT_FALSE(fs::exists(path(2)));
}

TEST_F(CapsulesTest, TheOldestGoWhenTheyAreTooLarge) {
  const std::size_t half = Capsules::kMostBytes / 2 - 4096;
  capsules.keep(failure(1, std::string(half, 'x')));
  age(1, 1);
  capsules.keep(failure(2, std::string(half, 'x')));
  age(2, 2);
  EXPECT_EQ(capsules.keep(failure(3, std::string(65536, 'x'))), (std::set{key(2), key(3)}));
  EXPECT_EQ(capsules.keep(failure(4, std::string(Capsules::kMostBytes, 'x'))), (std::set{key(2), key(3)}));
}

TEST_F(CapsulesTest, OneThatCannotBeReplacedStaysAndIsNamed) {
  capsules.keep(failure(1, "first"));
  capsules.keep(failure(2));
  EXPECT_EQ(capsules.keep(failure(1, std::string(Capsules::kMostBytes + 1, 'x'))), (std::set{key(1), key(2)}));
  // No file can be made as large as that.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{4096, before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const auto present = capsules.keep(failure(1, std::string(8192, 'x')));
  const auto others = capsules.keep(failure(3, std::string(8192, 'x')));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(present, (std::set{key(1), key(2)}));
  EXPECT_EQ(others, (std::set{key(1), key(2)}));
  const auto read = common::read_capsule(path(1));
  ASSERT_TRUE(read) << common::to_line(read.error());
  EXPECT_EQ(read->request.origin, "first");
}

// By a clock that was wrong.
TEST_F(CapsulesTest, WhatIsDatedInTheFutureTakesItsTurnFromNowOn) {
  const time_t future = std::time(nullptr) + 1'000'000;
  for (int i = 1; i <= 3; ++i) {
    capsules.keep(failure(i));
    date(path(i), future + i);
  }
  const std::string left = path(9) + ".1.new";
  std::ofstream(left).put('x');
  date(left, future);
  EXPECT_TRUE(capsules.keep(failure(4)).contains(key(4)));
  for (int i = 1; i <= 3; ++i) EXPECT_LT(date_of(path(i)), future) << i;
  EXPECT_LT(date_of(left), future) << "its minute has begun";
  age(4, 0);
  EXPECT_TRUE(capsules.keep(failure(5)).contains(key(5)));
  EXPECT_FALSE(fs::exists(path(4)));
  for (int i = 1; i <= 3; ++i) {
    if (fs::exists(path(i))) age(i, i);
  }
  capsules.keep(failure(6));
  EXPECT_EQ(capsules.keep(failure(7)), (std::set{key(5), key(6), key(7)}));
}

TEST_F(CapsulesTest, NothingIsWrittenWhereOthersMayWriteOrALinkLeads) {
  const std::string elsewhere = directory.path() + "/elsewhere";
  fs::create_directory(elsewhere);
  fs::create_directory_symlink(elsewhere, folder);
  EXPECT_THAT(capsules.keep(failure(1)), IsEmpty());
  EXPECT_TRUE(fs::is_empty(elsewhere));
  fs::remove(folder);
  fs::create_directory(folder);
  ASSERT_EQ(::chmod(folder.c_str(), 0777), 0);
  EXPECT_THAT(capsules.keep(failure(1)), IsEmpty());
  fs::remove(folder);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  EXPECT_THAT(capsules.keep(failure(1)), IsEmpty());
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  EXPECT_THAT(capsules.keep(failure(1)), ElementsAre(key(1)));
}

TEST_F(CapsulesTest, WhatWritersThatDiedLeftIsRemovedAndOthersFilesStay) {
  capsules.keep(failure(1));
  const std::string left = path(2) + ".1.new", theirs = folder + "/notes.json";
  std::ofstream(left).put('x');
  std::ofstream(theirs).put('x');
  const timeval old[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimes(left.c_str(), old), 0);
  capsules.keep(failure(3));
  EXPECT_FALSE(fs::exists(left));
  EXPECT_TRUE(fs::exists(theirs));
}

}  // namespace
}  // namespace jitc::service
