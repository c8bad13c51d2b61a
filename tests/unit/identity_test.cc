#include "common/identity.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using testing::TemporaryDirectory;

Identity sample() {
  Identity identity;
  identity.version = "0.1.0";
  identity.pid = 7;
  identity.compilers = {{"clang", "", "clang 19.1.7"}, {"gcc", "/usr/bin/gcc", "abc"}};
  identity.triple = "x86_64-pc-linux-gnu";
  identity.native_isa = "skylake +avx2";
  identity.store = "/home/u/.cache/jitc";
  identity.read_only_stores = {"/site"};
  return identity;
}

Request request_for(std::string compiler) {
  Request request;
  request.origin = "int x;";
  request.compiler = std::move(compiler);
  return request;
}

TEST(Identity, IsReadAsItWasWritten) {
  const TemporaryDirectory directory;
  Identity identity = sample();
  identity.include_roots = {{"/opt/petsc", sha256("x").hex()}};
  identity.store_is_shared = true;
  identity.store_owners = {{"/site", 1002}};
  ASSERT_TRUE(write_identity(directory.path(), identity));
  const auto back = read_identity(directory.path());
  ASSERT_TRUE(back) << to_line(back.error());
  EXPECT_EQ(back->pid, 7);
  EXPECT_EQ(back->compiler("/usr/bin/gcc")->identity, "abc");
  EXPECT_EQ(back->read_only_stores, identity.read_only_stores);
  EXPECT_TRUE(back->store_is_shared);
  EXPECT_EQ(back->store_owners, identity.store_owners);
  EXPECT_EQ(store_layers(*back).front().owner, 1002U);
  EXPECT_EQ(back->include_roots, identity.include_roots);
  const auto request = request_for("clang");
  EXPECT_EQ(resolve(request, identity)->key, resolve(request, *back)->key);
}

TEST(Identity, PathsThatAreNotUtf8AreWrittenSoThatNothingIsFoundThere) {
  const TemporaryDirectory directory;
  Identity identity = sample();
  identity.store = "/tmp/\xff";
  ASSERT_TRUE(write_identity(directory.path(), identity));
  const auto back = read_identity(directory.path());
  ASSERT_TRUE(back) << to_line(back.error());
  EXPECT_EQ(back->store, "/tmp/\ufffd");
}

TEST(Identity, MissingAndForeignFilesAreToldApart) {
  const TemporaryDirectory directory;
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kUnreachable);
  const Fd fd(::open((directory.path() + "/" + kIdentityFile).c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_TRUE(write_all(fd.get(), R"({"version": 3})", "identity"));
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kVersionSkew);
}

TEST(Identity, OnlyARegularFileInAPrivateDirectoryIsBelieved) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/" + kIdentityFile;
  ASSERT_TRUE(write_identity(directory.path(), sample()));
  ASSERT_EQ(::chmod(directory.path().c_str(), 0777), 0);
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kRefused);
  ASSERT_EQ(::chmod(directory.path().c_str(), 0700), 0);
  EXPECT_TRUE(read_identity(directory.path()));

  ASSERT_EQ(::rename(path.c_str(), (path + ".real").c_str()), 0);
  ASSERT_EQ(::symlink((path + ".real").c_str(), path.c_str()), 0);
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kRefused);

  ASSERT_EQ(::unlink(path.c_str()), 0);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);  // nobody writes: a blocking open would never return
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kRefused);
}

TEST(Identity, AnothersFileIsNotBelieved) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to give a file away";
  const TemporaryDirectory directory;
  ASSERT_TRUE(write_identity(directory.path(), sample()));
  ASSERT_EQ(::chown((directory.path() + "/" + kIdentityFile).c_str(), 65533, 65533), 0);
  EXPECT_EQ(read_identity(directory.path()).error().kind, ErrorKind::kRefused);
}

TEST(Identity, DirectHitsNeedWhatCannotHaveChanged) {
  Identity identity = sample();
  identity.version = build_version();
  EXPECT_TRUE(may_hit_directly(request_for("clang"), identity));
  EXPECT_FALSE(may_hit_directly(request_for("gcc"), identity));  // it may have been upgraded
  EXPECT_FALSE(may_hit_directly(request_for("icx"), identity));
  Identity other = identity;
  other.version = "0.0.0-other";  // of a daemon before an upgrade
  EXPECT_FALSE(may_hit_directly(request_for("clang"), other));
  other = identity;
  other.include_roots = {{"/opt/petsc", "digest"}};  // its headers may have been edited
  EXPECT_FALSE(may_hit_directly(request_for("clang"), other));
}

TEST(Resolve, UnknownCompilerNamesTheOfferedOnes) {
  const auto resolved = resolve(request_for("icx"), sample());
  ASSERT_FALSE(resolved);
  EXPECT_EQ(resolved.error().kind, ErrorKind::kRefused);
  EXPECT_NE(resolved.error().message.find("clang, gcc"), std::string::npos);
}

TEST(Resolve, WhatNobodyKnowsIsNotCompiledWith) {
  Identity identity = sample();
  identity.compilers[1].identity.clear();
  EXPECT_EQ(resolve(request_for("gcc"), identity).error().kind, ErrorKind::kRefused);
  EXPECT_TRUE(resolve(request_for("clang"), identity));
  identity.include_roots = {{"/opt/petsc", ""}};
  const auto refused = resolve(request_for("clang"), identity);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().thing, "include root /opt/petsc");
}

TEST(Resolve, IsaWishBecomesATargetWithoutTheWordNative) {
  Request request = request_for("clang");
  EXPECT_EQ(resolve(request, sample())->target.isa, isa_level_of(host_isa()));
  request.isa_level = isa_levels().front();
  EXPECT_EQ(resolve(request, sample())->target.isa, isa_levels().front());
  EXPECT_EQ(resolve(request, sample())->isa_needed, isa_mask_of(isa_levels().front()).value());
  request.isa_wish = "native";
  EXPECT_EQ(resolve(request, sample())->target.isa, "skylake +avx2");
  EXPECT_EQ(resolve(request, sample())->isa_needed, host_isa());
  request.isa_wish = "common";
  request.flags = {"-march=native"};
  EXPECT_EQ(resolve(request, sample())->target.isa, "skylake +avx2");
}

TEST(Resolve, TuningForThisCpuIsForNativeBuilds) {
  Request request = request_for("clang");
  request.flags = {"-mtune=native"};
  const auto refused = resolve(request, sample());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kRefused);
  request.flags = {"-mtune=native", "-march=native"};
  EXPECT_EQ(resolve(request, sample())->target.isa, "skylake +avx2");
  request.flags = {"-mtune=skylake"};
  EXPECT_TRUE(resolve(request, sample()));
}

TEST(Resolve, TwoCpusTwoKeysUnderNative) {
  Request request = request_for("clang");
  request.isa_wish = "native";
  Identity other = sample();
  other.native_isa = "zen4 +avx512f";
  EXPECT_NE(resolve(request, sample())->key, resolve(request, other)->key);
  EXPECT_EQ(resolve(request, sample())->request, resolve(request, other)->request);
}

TEST(Resolve, UpgradedCompilerAndChangedIncludeRootGiveNewKeys) {
  const Request request = request_for("gcc");
  Identity upgraded = sample();
  upgraded.compilers[1].identity = "abd";
  EXPECT_NE(resolve(request, sample())->key, resolve(request, upgraded)->key);
  Identity rooted = sample();
  rooted.include_roots = {{"/opt/petsc", "1"}};
  Identity moved = sample();
  moved.include_roots = {{"/elsewhere/petsc", "1"}};
  Identity changed = sample();
  changed.include_roots = {{"/opt/petsc", "2"}};
  EXPECT_NE(resolve(request, sample())->key, resolve(request, rooted)->key);
  EXPECT_EQ(resolve(request, rooted)->key, resolve(request, moved)->key) << "paths are in no key";
  EXPECT_NE(resolve(request, rooted)->key, resolve(request, changed)->key);
}

}  // namespace
}  // namespace jitc::common
