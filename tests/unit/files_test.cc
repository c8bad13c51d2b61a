#include "common/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using testing::TemporaryDirectory;

TEST(Files, ReadsWhatWasWrittenAndProcToo) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/f";
  const std::string bytes(100'000, 'b');
  {
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT, 0600));
    ASSERT_TRUE(write_all(fd.get(), bytes, path));
  }
  EXPECT_EQ(read_file(path).value(), bytes);
  EXPECT_GT(read_file("/proc/self/stat")->size(), 10u);
  const auto missing = read_file(path + "x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().thing, path + "x");
}

TEST(Files, FullDeviceIsStoreFull) {
  const Fd fd(::open("/dev/full", O_WRONLY));
  ASSERT_TRUE(fd);
  const auto written = write_all(fd.get(), "x", "/dev/full");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().kind, ErrorKind::kStoreFull);
}

TEST(Files, SealedMemoryFileCannotChange) {
  auto fd = sealed_memfd("test", "content", false);
  ASSERT_TRUE(fd) << to_line(fd.error());
  EXPECT_EQ(read_all(fd->get(), "test").value(), "content");
  EXPECT_LT(::write(fd->get(), "x", 1), 0);
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
  EXPECT_NE(::fcntl(fd->get(), F_GETFD) & FD_CLOEXEC, 0);
}

TEST(Files, DirectoriesOfOthersAreRefusedWithTheReason) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/a/b";
  ASSERT_TRUE(make_directories(path));
  ASSERT_TRUE(make_directories(path)) << "a second time";
  EXPECT_TRUE(check_private_directory(path));
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  const auto open = check_private_directory(path);
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().kind, ErrorKind::kRefused);
  EXPECT_NE(open.error().message.find("others may write"), std::string::npos);
  ASSERT_EQ(::chmod(path.c_str(), 0700), 0);
  const std::string link = directory.path() + "/link";
  ASSERT_EQ(::symlink(path.c_str(), link.c_str()), 0);
  EXPECT_FALSE(check_private_directory(link));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(path.c_str(), 4242, 4242), 0);
    const auto foreign = check_private_directory(path);
    ASSERT_FALSE(foreign);
    EXPECT_NE(foreign.error().message.find("4242"), std::string::npos);
  }
}

TEST(Files, AFileInTheWayOfADirectoryIsAnError) {
  const TemporaryDirectory directory;
  const std::string file = directory.path() + "/file";
  const Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT, 0600));
  EXPECT_FALSE(make_directories(file + "/below"));
  EXPECT_FALSE(make_directories(file));
}

TEST(Files, ReadsNoMoreThanIsWanted) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  const Fd fd(::open(path.c_str(), O_RDWR | O_CREAT, 0600));
  ASSERT_TRUE(write_all(fd.get(), "12345678", path));
  EXPECT_EQ(read_file(path, 8).value_or(""), "12345678");
  EXPECT_EQ(read_file(path, 7).error().message, "has more than 7 bytes");
  ASSERT_EQ(::ftruncate(fd.get(), off_t{40} << 30), 0);
  EXPECT_EQ(read_all(fd.get(), path).error().kind, ErrorKind::kStoreUnavailable);
  EXPECT_FALSE(read_file("/dev/zero", 100'000)) << "it says that it has no bytes, and never ends";
}

TEST(Files, StartTimeTellsProcessesApart) {
  EXPECT_NE(process_start_time(::getpid()), 0u);
  EXPECT_NE(process_start_time(::getpid()), process_start_time(1));
  EXPECT_EQ(process_start_time(0x3fffffff), 0u);
}

TEST(Files, OwnershipMoves) {
  Fd a(::open("/dev/null", O_RDONLY));
  const int number = a.get();
  Fd b = std::move(a);
  EXPECT_EQ(b.get(), number);
  b.reset();
  EXPECT_FALSE(b);
  EXPECT_LT(::fcntl(number, F_GETFD), 0) << "closed";
}

}  // namespace
}  // namespace jitc::common
