#include "common/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace jitc::common {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Mebibytes, AreRoundedToTheNearest) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 19;
  EXPECT_EQ(mebibytes(0), "0 MiB");
  EXPECT_EQ(mebibytes(2 * kHalf), "1 MiB");
  EXPECT_EQ(mebibytes(3 * kHalf - 1), "1 MiB");
  EXPECT_EQ(mebibytes(3 * kHalf), "2 MiB");
  EXPECT_EQ(mebibytes(~std::uint64_t{0}), "17592186044416 MiB");
}

TEST(Split, KeepsEmptyParts) {
  EXPECT_THAT(split("a,,b", ','), ElementsAre("a", "", "b"));
  EXPECT_THAT(split("a", ','), ElementsAre("a"));
  EXPECT_THAT(split("", ','), IsEmpty());
}

TEST(FieldNumber, IsOfTheWholeName) {
  EXPECT_EQ(field_number("max_x 1\nmax 12\n", "max"), 12u);
  EXPECT_EQ(field_number("max -1\n", "max"), std::nullopt);
  EXPECT_EQ(field_number("", "max"), std::nullopt);
}

}  // namespace
}  // namespace jitc::common
