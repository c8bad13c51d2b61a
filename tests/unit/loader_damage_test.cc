// Thousands of damaged artifacts handed to the loader: the dynamic linker sees none of them.
// TEST_SEED and TEST_DAMAGES choose others; the seed is printed.
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "client/loader/module.h"
#include "tests/support/artifact_damage.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_artifact.h"

namespace jitc::loader {
namespace {

using common::Digest;
using common::ErrorKind;

TEST(Module, NothingDamagedIsLoaded) {
  const std::uint64_t seed = testing::number_from_environment("TEST_SEED", 20'260'302);
  const std::uint64_t count = testing::number_from_environment("TEST_DAMAGES", 10'000);
  std::printf("TEST_SEED=%llu TEST_DAMAGES=%llu\n", static_cast<unsigned long long>(seed),
              static_cast<unsigned long long>(count));
  std::vector<Digest> keys;
  std::vector<std::string> files;
  for (const char* name : {"answer", "answer_7", "numbered", "undefined"}) {
    keys.push_back(common::sha256(name));
    files.push_back(testing::make_artifact(name, keys.back()));
  }
  testing::Damager damager(seed, files);
  const testing::TemporaryDirectory directory;
  const LoadOptions memory{.host_isa = 0xf, .stage_dir = ""};
  const LoadOptions staged{.host_isa = 0xf, .stage_dir = directory.path() + "/stage"};
  for (std::uint64_t i = 0; i < count; ++i) {
    const testing::Damage damage = damager.next();
    const auto module = Module::load(damage.bytes, &keys[damage.of], i % 2 == 0 ? memory : staged);
    ASSERT_FALSE(module) << damage.kind << ", damage " << i;
    ASSERT_EQ(module.error().kind, ErrorKind::kCorrupt) << damage.kind << ", damage " << i;
  }
  EXPECT_FALSE(std::filesystem::exists(staged.stage_dir)) << "nothing is written before it verifies";
  EXPECT_TRUE(Module::load(files[0], &keys[0], memory));
}

}  // namespace
}  // namespace jitc::loader
