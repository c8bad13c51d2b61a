#include "common/json.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "common/artifact.h"
#include "common/error.h"
#include "common/identity.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

std::string nest(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, IsReadDownToABoundedDepth) {
  EXPECT_EQ(parse_json("{\"a\": [1, {\"b\": \"x\"}]}").dump(), "{\"a\":[1,{\"b\":\"x\"}]}");
  EXPECT_FALSE(parse_json(nest(kDeepestJson)).is_discarded());
  EXPECT_TRUE(parse_json(nest(kDeepestJson + 2)).is_discarded());
  EXPECT_TRUE(parse_json("[" + nest(kDeepestJson + 1) + ", 1]").is_discarded());
  EXPECT_TRUE(parse_json("{\"a\": " + nest(1'000'000) + "}").is_discarded());
  EXPECT_FALSE(parse_json("[" + std::string(1000, ' ') + "\"" + std::string(1000, '[') + "\"]").is_discarded());
  for (const char* text : {"", "{", "[1,]", "nul", "\"\xff\""}) EXPECT_TRUE(parse_json(text).is_discarded()) << text;
}

TEST(Json, WhoReadsTextsOfOthersTakesDeepOnesForBroken) {
  const std::string deep = "{\"kind\": \"REFUSED\", \"name\": \"n\", \"x\": " + nest(1'000'000) + "}";
  EXPECT_EQ(manifest_from_json(deep).error().kind, ErrorKind::kCorrupt);
  EXPECT_EQ(error_from_json(deep).kind, ErrorKind::kInternal);
  const testing::TemporaryDirectory directory;
  std::ofstream(directory.path() + "/" + kIdentityFile) << deep;
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kVersionSkew);
}

}  // namespace
}  // namespace jitc::common
