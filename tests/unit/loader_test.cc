// Loading: nothing that does not verify, nothing for another CPU; nothing is left behind.
#include "client/loader/module.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cfenv>
#include <filesystem>
#include <new>
#include <random>
#include <set>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "tests/support/failing_new.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/test_artifact.h"

namespace jitc::loader {
namespace {

using common::Digest;
using common::ErrorKind;
using ::testing::HasSubstr;
using testing::make_artifact;

const Digest kKey = common::sha256("key");
const LoadOptions kMemory{0xf, ""};

double call(const Module& module, const std::string& name, double x) {
  const auto address = module.symbol(name);
  EXPECT_TRUE(address);
  return address ? reinterpret_cast<double (*)(double)>(*address)(x) : 0.0;
}

std::set<std::string> open_files() {
  std::set<std::string> files;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
    files.insert(entry.path().filename().string() + " " + std::filesystem::read_symlink(entry, ignored).string());
  return files;
}

TEST(Module, LoadsFunctionsAndVariables) {
  const auto module = Module::load(make_artifact("answer", kKey), &kKey, kMemory);
  ASSERT_TRUE(module) << common::to_line(module.error());
  EXPECT_EQ((*module)->key(), kKey);
  EXPECT_EQ(call(**module, "answer", 2.0), 84.0);
  EXPECT_EQ(static_cast<double*>(*(*module)->symbol("table"))[0], 42.0);
}

TEST(Module, WhatACommandLeftIsNoModule) {
  const LoadOptions any_cpu{~common::IsaMask{0}, ""};
  const auto module = Module::load(make_artifact("answer", kKey, common::kNotAModule | 1), &kKey, any_cpu);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, ErrorKind::kRefused);
}

TEST(Module, UnknownSymbolIsNamedAndLibrariesSymbolsAreNotItsOwn) {
  const auto module = Module::load(make_artifact("answer", kKey), &kKey, kMemory);
  ASSERT_TRUE(module);
  for (const char* name : {"nothing", "cos", "malloc"}) {
    const auto symbol = (*module)->symbol(name);
    ASSERT_FALSE(symbol) << name;
    EXPECT_EQ(symbol.error().kind, ErrorKind::kUsage);
    EXPECT_EQ(symbol.error().thing, name);
  }
}

TEST(Module, GivesItsBytesBack) {
  const std::string artifact = make_artifact("answer", kKey);
  const auto module = Module::load(artifact, &kKey, kMemory);
  ASSERT_TRUE(module);
  EXPECT_EQ((*module)->bytes(), artifact);
}

TEST(Module, TruncatedIsCorruptAtEveryLength) {
  const std::string whole = make_artifact("answer", kKey);
  for (std::size_t length :
       {std::size_t{0}, std::size_t{10}, std::size_t{100}, std::size_t{1000}, whole.size() / 2, whole.size() - 1}) {
    const auto module = Module::load(whole.substr(0, length), &kKey, kMemory);
    ASSERT_FALSE(module) << length;
    EXPECT_EQ(module.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(Module, FlippedBitIsCorrupt) {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    std::string bytes = make_artifact("answer", kKey);
    bytes[random() % bytes.size()] ^= static_cast<char>(1U << (random() % 8));
    const auto module = Module::load(bytes, &kKey, kMemory);
    ASSERT_FALSE(module);
    EXPECT_EQ(module.error().kind, ErrorKind::kCorrupt);
  }
}

TEST(Module, OtherKeyIsCorrupt) {
  const Digest other = common::sha256("other");
  const auto module = Module::load(make_artifact("answer", kKey), &other, kMemory);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, ErrorKind::kCorrupt);
  EXPECT_THAT(module.error().message, HasSubstr("another key"));
}

TEST(Module, CodeForABetterCpuIsRefused) {
  const auto module = Module::load(make_artifact("answer", kKey, 0x7), &kKey, {0x3, ""});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(Module::load(make_artifact("answer", kKey, 0x7), &kKey, {0xf, ""}));
}

TEST(Module, UndefinedSymbolIsReportedWithItsName) {
  const auto module = Module::load(make_artifact("undefined", kKey), &kKey, kMemory);
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, ErrorKind::kNotLoaded);
  EXPECT_THAT(module.error().message, HasSubstr("defined_nowhere"));
}

TEST(Module, UnloadClosesEveryDescriptor) {
  const auto before = open_files();
  for (int i = 0; i < 50; ++i) {
    const auto module = Module::load(make_artifact("answer", kKey), &kKey, kMemory);
    ASSERT_TRUE(module);
    EXPECT_NE(open_files(), before);
  }
  EXPECT_EQ(open_files(), before);
}

// The linker knows a module by its path, here /proc/self/fd/N: the next module on N must be itself.
TEST(Module, ReusedDescriptorNumberLoadsTheNewModule) {
  for (int i = 0; i < 20; ++i) {
    const auto first = Module::load(make_artifact("answer", kKey), &kKey, kMemory);
    ASSERT_TRUE(first);
    EXPECT_EQ(call(**first, "answer", 1.0), 42.0);
    const_cast<std::shared_ptr<Module>&>(*first).reset();
    const auto second = Module::load(make_artifact("answer_7", kKey), &kKey, kMemory);
    ASSERT_TRUE(second);
    EXPECT_EQ(call(**second, "answer", 1.0), 7.0);
  }
}

// Whatever allocation fails while a module is loaded, the linker has let go of it before its descriptor number is free.
TEST(Module, NoMemoryWhileLoadingLeavesNothingBehind) {
  const std::string artifact = make_artifact("answer", kKey);
  const std::string other = make_artifact("answer_7", kKey);
  const auto before = open_files();
  for (int spared = 0;; ++spared) {
    bool has_failed = false;
    try {
      const testing::FailingNew failing(spared);
      const auto module = Module::load(artifact, &kKey, kMemory);
      has_failed = failing.has_failed();
      EXPECT_EQ(module.has_value(), !has_failed);
    } catch (const std::bad_alloc&) {
      has_failed = true;
    }
    if (!has_failed) break;
    EXPECT_EQ(open_files(), before) << spared;
    const auto next = Module::load(other, &kKey, kMemory);
    ASSERT_TRUE(next);
    EXPECT_EQ(call(**next, "answer", 1.0), 7.0) << spared;
    ASSERT_LT(spared, 1000);
  }
}

TEST(Module, EqualHelperNamesDoNotMeet) {
  const auto first = Module::load(make_artifact("answer", kKey), &kKey, kMemory);
  const auto second = Module::load(make_artifact("answer_7", kKey), &kKey, kMemory);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(call(**first, "answer", 1.0), 42.0);
  EXPECT_EQ(call(**second, "answer", 1.0), 7.0);
  EXPECT_EQ(call(**first, "helper", 1.0), 42.0);
}

#if defined(__SSE__)
TEST(Module, LoadingLeavesTheFloatingPointControlAlone) {
  std::feclearexcept(FE_ALL_EXCEPT);
  const unsigned before = _mm_getcsr();
  const auto module = Module::load(make_artifact("flush_denormals", kKey), &kKey, kMemory);
  ASSERT_TRUE(module);
  EXPECT_EQ(_mm_getcsr(), before);
}
#endif

TEST(Module, StagedFileHasAStableNameAndStays) {
  const testing::TemporaryDirectory directory;
  const LoadOptions options{0xf, directory.path() + "/stage"};
  const std::string path = options.stage_dir + "/" + kKey.hex() + ".so";
  const std::string artifact = make_artifact("answer", kKey);
  for (int i = 0; i < 2; ++i) {
    const auto module = Module::load(artifact, &kKey, options);
    ASSERT_TRUE(module) << common::to_line(module.error());
    EXPECT_EQ(call(**module, "answer", 2.0), 84.0);
  }
  EXPECT_EQ(common::read_file(path), artifact);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(options.stage_dir), {}), 1);
}

TEST(Module, ForeignBytesUnderTheStagedNameAreReplacedNotLoaded) {
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path() + "/" + kKey.hex() + ".so";
  ASSERT_TRUE(std::filesystem::copy_file(std::string(JITC_TEST_MODULES) + "/answer_7.so", path));
  const auto module = Module::load(make_artifact("answer", kKey), &kKey, {0xf, directory.path()});
  ASSERT_TRUE(module);
  EXPECT_EQ(call(**module, "answer", 1.0), 42.0);
}

TEST(Module, StageDirectoryThatOthersMayWriteIsRefused) {
  const testing::TemporaryDirectory directory;
  ASSERT_EQ(chmod(directory.path().c_str(), 0777), 0);
  const auto module = Module::load(make_artifact("answer", kKey), &kKey, {0xf, directory.path()});
  ASSERT_FALSE(module);
  EXPECT_EQ(module.error().kind, ErrorKind::kNotLoaded);
  EXPECT_THAT(module.error().remedy, HasSubstr("JITC_STAGE_DIR"));
}

}  // namespace
}  // namespace jitc::loader
