#include "common/digest.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace jitc::common
