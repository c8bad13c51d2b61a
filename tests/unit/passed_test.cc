#include "daemon/service/passed.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

Product product(const char* key, const char* bytes) {
  Product made;
  made.key = common::text_digest(key);
  made.digest = common::text_digest(bytes);
  return made;
}

class PassedTest : public ::testing::Test {
 protected:
  // As a daemon that begins now knows it.
  bool knows(const Product& one, const std::string& cpu = "cpu") const { return Passed(file_, cpu).has(one); }
  void add(const Product& one) const {
    asio::thread_pool io(1);
    Passed passed(file_, "cpu");
    passed.add(one, io);
    EXPECT_TRUE(passed.has(one));
    io.join();
  }

  testing::TemporaryDirectory directory_;
  std::string file_ = directory_.path() + "/passed";
};

TEST_F(PassedTest, IsOfKeyBytesAndCpuAndOutlivesTheDaemon) {
  EXPECT_FALSE(knows(product("k", "b")));
  add(product("k", "b"));
  add(product("l", "b"));
  EXPECT_TRUE(knows(product("k", "b")));
  EXPECT_TRUE(knows(product("l", "b")));
  EXPECT_FALSE(knows(product("k", "c")));
  EXPECT_FALSE(knows(product("m", "b")));
  EXPECT_FALSE(knows(product("k", "b"), "another cpu"));
}

TEST_F(PassedTest, AFileThatCannotBeReadOrWrittenCostsChecksAlone) {
  std::ofstream(file_) << "no digest\n\n" << std::string(1000, 'f') << "\n";
  add(product("k", "b"));
  EXPECT_TRUE(knows(product("k", "b")));
  std::filesystem::remove(file_);
  std::filesystem::create_directory(file_);
  add(product("k", "b"));
  EXPECT_FALSE(knows(product("k", "b")));
}

TEST_F(PassedTest, IsWrittenOnceAndForItsOwnerAlone) {
  add(product("k", "b"));
  const auto size = std::filesystem::file_size(file_);
  add(product("k", "b"));
  EXPECT_EQ(std::filesystem::file_size(file_), size);
  struct stat status{};
  ASSERT_EQ(::stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
}

}  // namespace
}  // namespace jitc::service
