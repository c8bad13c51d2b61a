// What enters keys beside the request: include roots and external compilers, and when they count as changed.
#include "daemon/service/installation.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "daemon/service/file_tree.h"
#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using testing::TemporaryDirectory;

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

std::vector<std::string> names(const FileTree& tree) {
  std::vector<std::string> names;
  for (const auto& entry : tree.entries)
    names.push_back(entry.name + (entry.target.empty() ? "" : " -> " + entry.target));
  return names;
}

std::string digest_of(const std::string& root) {
  Installation installation({}, {root});
  installation.inspect();
  return installation.include_roots().at(0).second;
}

TEST(FileTree, FollowsLinkedDirectoriesOnceAndTellsOfTheLinks) {
  const TemporaryDirectory place;
  const fs::path root = fs::path(place.path()) / "root", outside = fs::path(place.path()) / "outside";
  fs::create_directories(root / "v1");
  fs::create_directories(outside);
  write(root / "v1" / "a.h", "1");
  write(outside / "b.h", "1");
  fs::create_directory_symlink("v1", root / "current");
  fs::create_directory_symlink(outside, root / "vendor");
  fs::create_directory_symlink("..", root / "v1" / "loop");
  fs::create_symlink("v1/a.h", root / "a.h");
  fs::create_symlink("missing", root / "dangling");
  const FileTree tree = read_tree(root);
  EXPECT_TRUE(tree.whole);
  EXPECT_EQ(names(tree),
            (std::vector<std::string>{"a.h", "current -> v1", "current/a.h", "current/loop -> ..",
                                      "dangling -> missing", "vendor -> " + outside.string(), "vendor/b.h"}));
}

TEST(FileTree, WhatCannotBeListedButEnteredIsUnknown) {
  if (::geteuid() == 0) GTEST_SKIP() << "nothing is closed to root";
  const TemporaryDirectory place;
  const fs::path hidden = fs::path(place.path()) / "hidden";
  fs::create_directory(hidden);
  ASSERT_EQ(::chmod(hidden.c_str(), 0100), 0);
  EXPECT_FALSE(read_tree(place.path()).whole);
  ASSERT_EQ(::chmod(hidden.c_str(), 0), 0);
  EXPECT_TRUE(read_tree(place.path()).whole);
  ASSERT_EQ(::chmod(hidden.c_str(), 0700), 0);
}

TEST(Installation, ALinkThatLeadsElsewhereInsideTheRootChangesItsDigest) {
  const TemporaryDirectory place;
  const fs::path root = place.path();
  for (const char* version : {"v1", "v2"}) {
    fs::create_directory(root / version);
    write(root / version / "a.h", version);
  }
  fs::create_directory_symlink("v1", root / "current");
  Installation installation({}, {root});
  installation.inspect();
  const std::string before = installation.include_roots().at(0).second;
  EXPECT_FALSE(installation.changed());
  fs::remove(root / "current");
  fs::create_directory_symlink("v2", root / "current");
  EXPECT_TRUE(installation.changed());
  installation.inspect();
  EXPECT_NE(installation.include_roots().at(0).second, before);
}

TEST(Installation, ARootsDigestIsOfNamesAndContents) {
  const TemporaryDirectory place, other;
  for (const auto* one : {&place, &other}) {
    fs::create_directory(fs::path(one->path()) / "sub");
    write(fs::path(one->path()) / "sub" / "a.h", "#define A 1\n");
  }
  EXPECT_EQ(digest_of(place.path()), digest_of(other.path()));
  write(fs::path(other.path()) / "sub" / "a.h", "#define A 2\n");
  EXPECT_NE(digest_of(place.path()), digest_of(other.path()));
}

// A script that says what a driver says of its include directories.
std::string script_driver(const fs::path& place, const fs::path& includes) {
  const fs::path driver = place / "cc";
  write(driver, "#!/bin/sh\necho '#include <...> search starts here:'\necho ' " + includes.string() +
                    "'\necho 'End of search list.'\n");
  fs::permissions(driver, fs::perms::owner_all);
  return driver;
}

std::string identity_of(const Installation& installation, const std::string& name) {
  for (const auto& compiler : installation.compilers())
    if (compiler.name == name) return compiler.identity;
  return {};
}

TEST(Installation, AChangedSystemHeaderIsAChangeOfTheCompiler) {
  const TemporaryDirectory place;
  const fs::path includes = fs::path(place.path()) / "include";
  fs::create_directory(includes);
  write(includes / "math.h", "1");
  const std::string driver = script_driver(place.path(), includes);
  Installation installation({driver}, {});
  installation.inspect();
  const std::string before = identity_of(installation, driver);
  ASSERT_FALSE(before.empty());
  const auto looked = std::chrono::steady_clock::now();
  EXPECT_FALSE(installation.changed(looked));
  write(includes / "math.h", "other");
  EXPECT_FALSE(installation.changed(looked)) << "a look that began later is fresh enough";
  EXPECT_TRUE(installation.changed());
  installation.inspect();
  EXPECT_NE(identity_of(installation, driver), before);
}

TEST(Installation, TheLibrariesOfACompilerArePartOfIt) {
  const TemporaryDirectory place;
  const fs::path directory = place.path();
  write(directory / "part.c", "int part(void) { return 1; }\n");
  write(directory / "main.c", "int part(void);\nint main(void) { return part(); }\n");
  const std::string enter = "cd " + directory.string() + " && ";
  const std::string library = enter + "gcc -shared -fPIC -o libpart.so part.c";
  if (std::system(library.c_str()) != 0) GTEST_SKIP() << "needs gcc, to make a program";
  ASSERT_EQ(std::system((enter + "gcc -o cc main.c -L. -lpart '-Wl,-rpath,$ORIGIN'").c_str()), 0);
  const std::string driver = directory / "cc";
  Installation installation({driver}, {});
  installation.inspect();
  const std::string before = identity_of(installation, driver);
  EXPECT_FALSE(installation.changed());
  write(directory / "part.c", "int part(void) { return 2; }\n");
  ASSERT_EQ(std::system(library.c_str()), 0);
  EXPECT_TRUE(installation.changed());
  installation.inspect();
  EXPECT_NE(identity_of(installation, driver), before);
}

// The worker could not be told of it.
TEST(Installation, ACompilerInADirectoryWhoseNameIsNotUtf8IsNotFound) {
  const TemporaryDirectory place;
  const fs::path odd = place.path() + "/\xff", good = place.path() + "/good";
  for (const auto& directory : {odd, good}) {
    fs::create_directory(directory);
    write(directory / "mycc", "#!/bin/sh\n");
    fs::permissions(directory / "mycc", fs::perms::owner_all);
  }
  const testing::ScopedEnvironment path{{"PATH", (odd.string() + ":" + good.string()).c_str()}};
  const auto offered = Installation({"mycc"}, {}).offered();
  const auto mine = std::ranges::find(offered, "mycc", &common::CompilerIdentity::name);
  ASSERT_NE(mine, offered.end());
  EXPECT_EQ(mine->path, good / "mycc");
}

}  // namespace
}  // namespace jitc::service
