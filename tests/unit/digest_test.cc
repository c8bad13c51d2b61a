#include "common/digest.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/file_digest.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

TEST(Digest, IsSha256) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(sha256("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Digest, HexGoesBothWays) {
  const Digest digest = sha256("x");
  EXPECT_EQ(Digest::from_hex(digest.hex()), digest);
  EXPECT_FALSE(Digest::from_hex(digest.hex().substr(1)));
  EXPECT_FALSE(Digest::from_hex(std::string(63, '0') + "G"));
  EXPECT_FALSE(Digest::from_hex(std::string(63, '0') + "A"));
}

TEST(Hasher, FieldBordersCount) {
  const auto two = [](std::string_view a, std::string_view b) {
    Hasher hasher("test");
    return hasher.text("f", a).text("f", b).finish();
  };
  EXPECT_EQ(two("-DA", "-DB"), two("-DA", "-DB"));
  EXPECT_NE(two("-DA", "-DB"), two("-DA-DB", ""));
  EXPECT_NE(two("-DA", "-DB"), two("-DB", "-DA"));
}

TEST(Hasher, TypeNameAndDomainCount) {
  const auto text = [](std::string_view domain, std::string_view name) {
    Hasher hasher(domain);
    return hasher.text(name, std::string_view("\1\0\0\0\0\0\0\0", 8)).finish();
  };
  Hasher number("test");
  EXPECT_NE(text("test", "n"), number.number("n", 1).finish());
  EXPECT_NE(text("test", "n"), text("test", "m"));
  EXPECT_NE(text("test", "n"), text("other", "n"));
}

// Most memory that this process had since the last call, in bytes.
std::size_t peak_since(bool reset) {
  if (reset) std::ofstream("/proc/self/clear_refs") << "5";
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes << 10;
  }
  return 0;
}

TEST(FileDigest, IsOfItsContentAndReadsItInSmallParts) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/file";
  std::string content;
  for (int i = 0; i < 50'000; ++i) content += std::to_string(i);
  std::ofstream(path) << content;
  EXPECT_EQ(sha256_of_file(path), sha256(content));
  std::ofstream(path, std::ios::trunc).flush();
  EXPECT_EQ(sha256_of_file(path), sha256(""));
  constexpr std::size_t kLarge = 256 << 20;
  std::filesystem::resize_file(path, kLarge);
  const std::size_t before = peak_since(true);
  EXPECT_TRUE(sha256_of_file(path));
  EXPECT_LT(peak_since(false), before + kLarge / 2);
  EXPECT_FALSE(sha256_of_file(directory.path() + "/none"));
}

}  // namespace
}  // namespace jitc::common
