// `jitc cache`: care for a store by hand, without a daemon.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <map>
#include <sstream>
#include <tuple>

#include "common/owner.h"
#include "tests/support/command.h"

namespace jitc {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class CliCacheTest : public testing::CommandTest {
 protected:
  struct Kept {
    std::string name, created;
    double compile_seconds = 0;
    std::size_t bytes = 10;  // of its image
    std::chrono::seconds unused = 0s;
  };
  // The path of a new entry, whose key is made of its name.
  std::string keep(const Kept& kept) const {
    const std::string elf = "\177ELF" + std::string(kept.bytes, 'x');
    const auto key = key_named(kept.name);
    common::Manifest manifest;
    manifest.key = key.hex();
    manifest.name = kept.name;
    manifest.created = kept.created;
    manifest.compile_seconds = kept.compile_seconds;
    std::string path = common::artifact_path(store, key);
    fs::create_directories(fs::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << elf << common::make_tail(elf, manifest, key, 1);
    unused_for(path, kept.unused);
    return path;
  }
  static common::Digest key_named(const std::string& name) { return common::sha256(name); }
  static void unused_for(const std::string& path, std::chrono::seconds time) {
    const auto used =
        std::chrono::duration_cast<std::chrono::seconds>((std::chrono::system_clock::now() - time).time_since_epoch());
    const timespec times[] = {{used.count(), 0}, {used.count(), 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  static std::vector<json> lines(const std::string& text) {
    std::vector<json> objects;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) objects.push_back(json::parse(line));
    return objects;
  }
  std::vector<std::string> listed(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"cache", "ls", "--json"});
    std::vector<std::string> names;
    for (const json& object : lines(jitc(arguments).out)) names.push_back(object["name"]);
    return names;
  }
  std::size_t in_quarantine() const {
    std::error_code none;
    const fs::directory_iterator entries(store + "/v1/quarantine", none);
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
  }
};

TEST_F(CliCacheTest, LsSortsAndLimits) {
  keep({.name = "b", .created = "2026-01-02T00:00:00Z", .compile_seconds = 3, .bytes = 10, .unused = 30s});
  keep({.name = "c", .created = "2026-01-03T00:00:00Z", .compile_seconds = 1, .bytes = 3000, .unused = 10s});
  keep({.name = "a", .created = "2026-01-01T00:00:00Z", .compile_seconds = 2, .bytes = 200, .unused = 20s});
  EXPECT_THAT(listed({}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(listed({"--sort", "used"}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(listed({"--sort", "size"}), ElementsAre("c", "a", "b"));
  EXPECT_THAT(listed({"--sort", "name"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(listed({"--sort", "age"}), ElementsAre("a", "b", "c"));
  EXPECT_THAT(listed({"--sort", "compile-seconds"}), ElementsAre("b", "a", "c"));
  EXPECT_THAT(listed({"--sort", "compile-seconds", "--limit", "1"}), ElementsAre("b"));
  EXPECT_THAT(listed({"--sort", "size", "--limit", "2"}), ElementsAre("c", "a"));
  const auto limited = jitc({"cache", "ls", "--limit", "1"});
  EXPECT_THAT(limited.out, HasSubstr("compiled in 1 s  c\n"));
  EXPECT_THAT(limited.err, HasSubstr("3 artifacts")) << "the count is the store's";
  EXPECT_EQ(jitc({"cache", "ls", "--sort", "colour"}).exit_code, 2);
  EXPECT_EQ(jitc({"cache", "ls", "--limit", "0"}).exit_code, 2);
}

TEST_F(CliCacheTest, GcBringsTheStoreWithinTheLimits) {
  for (int i = 0; i < 10; ++i) keep({.name = std::to_string(i), .unused = 24h * (10 - i)});
  keep({.name = "now"});
  const auto would = json::parse(jitc({"cache", "gc", "--max-entries", "8", "--dry-run", "--json"}).out);
  EXPECT_EQ(would["removed"], 4);  // down to nine tenths
  EXPECT_EQ(would["dry_run"], true);
  EXPECT_EQ(listed({}).size(), 11u);
  const auto did = jitc({"cache", "gc", "--max-entries", "8", "--json"});
  EXPECT_EQ(did.exit_code, 0) << did.err;
  EXPECT_EQ(json::parse(did.out)["removed"], 4);
  EXPECT_EQ(json::parse(did.out)["entries"], 7);
  EXPECT_THAT(listed({"--sort", "name"}), ElementsAre("4", "5", "6", "7", "8", "9", "now"));
  EXPECT_THAT(jitc({"cache", "gc", "--max-age", "60h"}).out, HasSubstr("removed 4 artifacts"));
  EXPECT_THAT(listed({"--sort", "name"}), ElementsAre("8", "9", "now"));
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--max-bytes", "1", "--json"}).out)["removed"], 2);
  EXPECT_THAT(listed({}), ElementsAre("now")) << "what was used within the hour stays";
  environment["JITC_STORE_MAX_AGE"] = "1s";
  environment["JITC_STORE_MAX_ENTRIES"] = "1";
  unused_for(keep({.name = "old"}), 2h);
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--json", "--max-age", "0"}).out)["removed"], 1) << "by number";
  unused_for(keep({.name = "old"}), 2h);
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--json", "--max-entries", "0"}).out)["removed"], 1) << "by age";
}

TEST_F(CliCacheTest, GcTakesWhatEndedWritersLeft) {
  keep({.name = "a"});
  fs::create_directory(store + "/v1/tmp");
  common::Owner dead = common::Owner::this_process();
  dead.pid = 4'000'000;
  std::ofstream(store + "/v1/tmp/" + common::temp_name(dead)) << "partial";
  std::ofstream(store + "/v1/tmp/" + common::temp_name(common::Owner::this_process())) << "partial";
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--json"}).out)["stale_temps"], 1);
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--json"}).out)["stale_temps"], 0);
}

TEST_F(CliCacheTest, GcSaysWhatItCouldNotSee) {
  keep({.name = "a"});
  fs::create_symlink("/nowhere", store + "/v1/zz");
  const auto listed = jitc({"cache", "gc"});
  EXPECT_EQ(listed.exit_code, 7);
  EXPECT_THAT(listed.err, HasSubstr(store + "/v1/zz: cannot be listed"));
  EXPECT_THAT(listed.out, HasSubstr("at least 1 artifacts"));
  const auto object = json::parse(jitc({"cache", "gc", "--json"}).out);
  EXPECT_EQ(object["complete"], false);
  EXPECT_EQ(object["stale_leases"], 0);
}

TEST_F(CliCacheTest, ADryRunChangesNothing) {
  keep({.name = "a"});
  fs::remove_all(store + "/v1/tmp");
  EXPECT_EQ(jitc({"cache", "gc", "--dry-run"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(store + "/v1/tmp"));
}

TEST_F(CliCacheTest, TwoGcAtOnceRemoveEachOnce) {
  constexpr int kEntries = 200;
  for (int i = 0; i < kEntries; ++i) keep({.name = std::to_string(i), .unused = 24h + 1s * i});
  std::vector<std::string> gc = {JITC_BIN_DIR "/jitc", "cache", "gc", "--json", "--max-entries", "100"};
  // As on nodes that do not hear of each other, where that can be had; else one of them cleans.
  const bool are_nodes = Process({"/usr/bin/unshare", "--net", "/bin/true"}, environment).wait().exit_code == 0;
  if (are_nodes) gc.insert(gc.begin(), {"/usr/bin/unshare", "--net"});
  std::array<std::optional<Process>, 3> cleaners;
  for (auto& cleaner : cleaners) cleaner.emplace(gc, environment);
  const auto read = jitc({"cache", "verify"});  // a reader meanwhile
  EXPECT_EQ(read.exit_code, 0) << read.err;
  std::uint64_t removed = 0;
  int done = 0;
  for (auto& cleaner : cleaners) {
    const auto finished = cleaner->wait();
    if (finished.exit_code == 4) continue;  // another one cleaned
    ASSERT_EQ(finished.exit_code, 0) << finished.err;
    removed += json::parse(finished.out)["removed"].get<std::uint64_t>();
    ++done;
  }
  EXPECT_GE(done, are_nodes ? 3 : 1);
  EXPECT_EQ(removed, 110u);
  EXPECT_EQ(listed({}).size(), kEntries - removed);
}

TEST_F(CliCacheTest, VerifyRepairs) {
  keep({.name = "good"});
  const std::string bad = keep({.name = "bad"}), loose = keep({.name = "loose"});
  std::ofstream(bad) << "broken";
  fs::permissions(loose, fs::perms::others_write, fs::perm_options::add);
  const auto looked = jitc({"cache", "verify", "--json"});
  EXPECT_EQ(looked.exit_code, 7);
  const auto found = lines(looked.out);
  ASSERT_EQ(found.size(), 2u);
  for (const json& object : found) {
    EXPECT_EQ(object["state"], object["path"] == bad ? "corrupt" : "untrusted");
    EXPECT_EQ(object["repaired"], false);
  }
  EXPECT_THAT(looked.err, HasSubstr("1 good, 1 corrupt, 0 unreadable, 1 not trusted\n"));
  const auto repaired = jitc({"cache", "verify", "--repair"});
  EXPECT_EQ(repaired.exit_code, 0) << repaired.err;
  EXPECT_EQ(repaired.out, bad + "\n");
  EXPECT_THAT(repaired.err, HasSubstr("1 good, 0 corrupt, 0 unreadable, 0 not trusted; 2 moved to the quarantine\n"));
  EXPECT_EQ(in_quarantine(), 2u);
  EXPECT_THAT(listed({}), ElementsAre("good"));
}

TEST_F(CliCacheTest, WhatRepairCannotMoveIsSaid) {
  environment["JITC_STORE_READONLY"] = store;
  environment["JITC_STORE"] = directory.path() + "/own";
  const std::string bad = keep({.name = "bad"});
  std::ofstream(bad) << "broken";
  const auto done = jitc({"cache", "verify", "--repair"});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_THAT(done.err, HasSubstr("1 corrupt"));
  EXPECT_TRUE(fs::exists(bad)) << "a read-only store is left alone";
}

TEST_F(CliCacheTest, RmRemovesWhatIsNamed) {
  for (const char* name : {"a", "b", "c", "d"}) keep({.name = name});
  unused_for(keep({.name = "old"}), 24h * 10);
  std::ofstream(keep({.name = "bad"})) << "broken";
  const std::string a = key_named("a").hex(), b = key_named("b").hex();
  const auto wrong = jitc({"cache", "rm", a, "ffffffffffff"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_EQ(jitc({"cache", "rm", a, ""}).exit_code, 2) << "several begin so";
  EXPECT_EQ(listed({}).size(), 6u) << "nothing goes when a key is wrong";
  const auto removed = lines(jitc({"cache", "rm", "--json", a, b.substr(0, 10)}).out);
  ASSERT_EQ(removed.size(), 2u);
  for (const json& object : removed) EXPECT_EQ(object["removed"], true);
  EXPECT_EQ(jitc({"cache", "rm", "--older-than", "9d"}).exit_code, 0);
  EXPECT_EQ(jitc({"cache", "rm", "--corrupt"}).exit_code, 0);
  EXPECT_THAT(listed({"--sort", "name"}), ElementsAre("c", "d"));
  EXPECT_EQ(jitc({"cache", "rm"}).exit_code, 2);
  EXPECT_EQ(jitc({"cache", "rm", "--all"}).exit_code, 2);
  EXPECT_EQ(jitc({"cache", "rm", "--all", "--corrupt", "--yes"}).exit_code, 2);
  EXPECT_EQ(listed({}).size(), 2u);
  EXPECT_THAT(jitc({"cache", "rm", "--all", "--yes"}).err, HasSubstr("2 artifacts removed"));
  EXPECT_THAT(listed({}), ElementsAre());
}

TEST_F(CliCacheTest, NothingIsRemovedByASlip) {
  const std::string path = keep({.name = "only"}), hex = key_named("only").hex();
  for (const std::vector<std::string>& slip : {std::vector<std::string>{""},
                                               {hex.substr(0, 3)},
                                               {"--older-than", "0"},
                                               {"--older-than", "0d"},
                                               {"--older-than", "1ms"}}) {
    std::vector<std::string> all = {"cache", "rm"};
    all.insert(all.end(), slip.begin(), slip.end());
    const auto done = jitc(all);
    EXPECT_EQ(done.exit_code, 2) << done.err;
    EXPECT_TRUE(fs::exists(path));
  }
  EXPECT_EQ(jitc({"cache", "show", ""}).exit_code, 2);
  EXPECT_EQ(jitc({"cache", "rm", "--older-than", "0", "--yes"}).exit_code, 0);
  EXPECT_FALSE(fs::exists(path));
  keep({.name = "only"});
  EXPECT_EQ(jitc({"cache", "rm", hex.substr(0, 4)}).exit_code, 0);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(CliCacheTest, AShortTimeIsNoMissingLimit) {
  keep({.name = "old", .unused = 48h});
  EXPECT_EQ(json::parse(jitc({"cache", "gc", "--json", "--max-age", "500ms"}).out)["removed"], 1);
}

TEST_F(CliCacheTest, WhatIsNoFileIsRepaired) {
  const std::string path = common::artifact_path(store, key_named("a"));
  fs::create_directories(path + "/inside");
  const std::string fifo = common::artifact_path(store, key_named("b"));
  fs::create_directories(fs::path(fifo).parent_path());
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const std::string hex = key_named("a").hex();
  for (const char* command : {"show", "explain"}) {
    const auto shown = std::string(command) == "show" ? jitc({"cache", "show", hex}) : jitc({"explain", hex});
    EXPECT_EQ(shown.exit_code, 7);
    EXPECT_THAT(shown.err, HasSubstr(path + ": not a regular file"));
  }
  const auto looked = jitc({"cache", "verify"});
  EXPECT_EQ(looked.exit_code, 7);
  EXPECT_THAT(looked.err, HasSubstr("0 good, 0 corrupt, 2 unreadable, 0 not trusted"));
  const auto repaired = jitc({"cache", "verify", "--repair"});
  EXPECT_EQ(repaired.exit_code, 0) << repaired.err;
  EXPECT_THAT(repaired.err, HasSubstr("2 moved to the quarantine\n"));
  EXPECT_EQ(in_quarantine(), 2u);
}

TEST_F(CliCacheTest, EachLineSaysWhatToDo) {
  const std::string loose = keep({.name = "loose"}), bad = keep({.name = "bad"}), shared = keep({.name = "shared"});
  const std::string shard = fs::path(shared).parent_path();
  fs::permissions(loose, fs::perms::others_write, fs::perm_options::add);
  std::ofstream(bad) << "broken";
  const auto remedies = [&] {
    const auto looked = jitc({"cache", "verify", "--json"});
    std::map<std::string, std::string> found;
    for (const json& object : lines(looked.out)) found[object["path"]] = object["remedy"];
    for (const auto& [path, remedy] : found) EXPECT_THAT(looked.err, HasSubstr(remedy + "\n")) << path;
    return found;
  };
  auto found = remedies();
  EXPECT_THAT(found[loose], HasSubstr("chmod go-w " + loose));
  EXPECT_THAT(found[loose], HasSubstr("jitc cache rm " + key_named("loose").hex()));
  EXPECT_THAT(found[bad], HasSubstr("jitc cache rm " + key_named("bad").hex()));
  fs::permissions(shard, fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(remedies()[shared], HasSubstr("chmod go-w " + shard));
  fs::permissions(store, fs::perms::group_write, fs::perm_options::add);
  EXPECT_THAT(remedies()[shared], HasSubstr("chmod go-w " + store));
}

TEST_F(CliCacheTest, ExplainSaysOfAnArtifactThatItIsNotGood) {
  const std::string path = keep({.name = "a"}), hex = key_named("a").hex();
  EXPECT_EQ(json::parse(jitc({"explain", hex, "--json"}).out)["notes"].size(), 1u) << "of an earlier jitc";
  fs::permissions(path, fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(jitc({"explain", hex}).err, HasSubstr("is there but is not used (others may write it)"));
  fs::permissions(path, fs::perms::others_write, fs::perm_options::remove);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(6).put('y');
  EXPECT_THAT(jitc({"explain", hex}).err, HasSubstr("does not verify (its digest"));
  EXPECT_THAT(jitc({"explain", write("f.c", kSource)}).err, HasSubstr("does not verify (its digest")) << "the nearest";
}

TEST_F(CliCacheTest, TheWayToTheStoreIsAskedByAll) {
  keep({.name = "a"});
  const std::string hex = key_named("a").hex();
  fs::permissions(directory.path(), fs::perms::others_write, fs::perm_options::add);
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"cache", "ls"},
                                                    {"cache", "verify"},
                                                    {"cache", "show", hex},
                                                    {"explain", hex},
                                                    {"cache", "gc"}}) {
    const auto done = jitc(arguments);
    EXPECT_THAT(done.err, HasSubstr(directory.path() + ": others may write into it")) << arguments.back();
    if (arguments.front() == "cache") {
      EXPECT_NE(done.exit_code, 0) << arguments.back();
    }
  }
}

TEST_F(CliCacheTest, WhatIsNoStoreIsSaidByAll) {
  const std::string file = write("file", "no store"), later = directory.path() + "/later";
  fs::create_directories(later + "/v2/00");
  fs::create_directories(directory.path() + "/odd");
  std::ofstream(directory.path() + "/odd/v1") << "no directory";
  const std::vector<std::tuple<std::string, std::string, int>> others = {
      {"/etc", "/etc: not a store", 7},
      {file, file + ": cannot be listed: Not a directory", 7},
      {later, later + ": a store of another version (v2)", -1},
      {directory.path() + "/odd", directory.path() + "/odd/v1: cannot be listed: Not a directory", 7}};
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"ls"},
                                                    {"verify"},
                                                    {"verify", "--repair"},
                                                    {"show", "0123456789"},
                                                    {"gc"},
                                                    {"rm", "--all", "--yes"},
                                                    {"rm", "0123456789"}}) {
    for (const auto& [path, text, code] : others) {
      std::vector<std::string> all = {"cache"};
      all.insert(all.end(), arguments.begin(), arguments.end());
      all.insert(all.end(), {"--store", path});
      const auto done = jitc(all);
      EXPECT_THAT(done.err, HasSubstr(text)) << arguments.front();
      EXPECT_NE(done.exit_code, 0) << arguments.front();
      if (code > 0) {
        EXPECT_EQ(done.exit_code, code) << arguments.front() << " " << path;
      }
    }
  }
}

TEST_F(CliCacheTest, WhatIsNoFileIsNotRemovedAndSaid) {
  const std::string path = common::artifact_path(store, key_named("a"));
  fs::create_directories(path + "/inside");
  const auto done = jitc({"cache", "rm", key_named("a").hex()});
  EXPECT_EQ(done.exit_code, 7);
  EXPECT_THAT(done.err, HasSubstr(path + ": cannot be removed"));
}

TEST_F(CliCacheTest, ADirectoryThatIsNoStoreStaysAsItIs) {
  const std::string plain = directory.path() + "/plain";
  fs::create_directory(plain);
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"gc"}, {"ls"}, {"verify"}, {"rm", "--all", "--yes"}, {"rm", "--older-than", "1s"}}) {
    std::vector<std::string> all = {"cache"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    all.insert(all.end(), {"--store", plain});
    const auto done = jitc(all);
    EXPECT_EQ(done.exit_code, 0);
    EXPECT_THAT(done.err, HasSubstr("there is no store yet"));
  }
  EXPECT_TRUE(fs::is_empty(plain));
  EXPECT_EQ(jitc({"cache", "rm", key_named("a").hex(), "--store", plain}).exit_code, 2);
}

TEST_F(CliCacheTest, AStoreThatOthersMayWriteIsNotCleaned) {
  keep({.name = "a", .unused = 48h});
  fs::permissions(store, fs::perms::group_write, fs::perm_options::add);
  const auto refused = jitc({"cache", "gc", "--max-age", "1s"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_THAT(refused.err, HasSubstr("others may write into it"));
  environment["JITC_STORE_ALLOW_SHARED"] = "1";
  EXPECT_THAT(jitc({"cache", "gc", "--max-age", "1s"}).out, HasSubstr("removed 1 artifacts"));
}

TEST_F(CliCacheTest, NoLinkIsFollowedInsideAStore) {
  const std::string path = keep({.name = "a", .unused = 48h});
  const std::string shard = fs::path(path).parent_path(), away = directory.path() + "/away";
  fs::rename(shard, away);
  fs::create_directory_symlink(away, shard);
  const auto listing = jitc({"cache", "ls"});
  EXPECT_EQ(listing.exit_code, 4);
  EXPECT_EQ(listing.out, "");
  EXPECT_THAT(listing.err, HasSubstr(shard + ": a symbolic link"));
  EXPECT_EQ(jitc({"cache", "rm", "--all", "--yes"}).exit_code, 4);
  EXPECT_EQ(jitc({"cache", "gc", "--max-age", "1s"}).exit_code, 7) << "and it says so";
  EXPECT_FALSE(fs::is_empty(away));
}

// Without a daemon, so that only a direct hit can answer.
TEST_F(CliCacheTest, ADirectHitBelievesTheSame) {
  const std::string path = put(kSource, "f"), file = write("f.c", kSource);
  ASSERT_TRUE(common::write_identity(runtime, identity));
  EXPECT_EQ(jitc({"submit", file}).out, path + "\n");
  fs::permissions(path, fs::perms::group_write, fs::perm_options::add);
  EXPECT_EQ(jitc({"submit", file}).exit_code, 3);
  EXPECT_EQ(jitc({"cache", "show", key_of(kSource).hex()}).exit_code, 4);
  identity.store_is_shared = true;
  ASSERT_TRUE(common::write_identity(runtime, identity));
  EXPECT_EQ(jitc({"submit", file}).out, path + "\n");
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(jitc({"submit", file}).exit_code, 3) << "and no wait for a writer";
}

TEST_F(CliCacheTest, WrongValuesAreUsageErrors) {
  keep({.name = "a"});
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"gc", "--max-bytes", "much"},
                                                {"gc", "--max-age", "-1"},
                                                {"gc", "--max-entries", "x"},
                                                {"gc", "--max-entries", "-1"},
                                                {"gc", "--max-entries", "99999999999999999999"},
                                                {"gc", "--max-entries", "010"},
                                                {"gc", "--max-entries", "0x2"},
                                                {"ls", "--limit", "-1"},
                                                {"ls", "--limit", "0x2"},
                                                {"rm", "--older-than", "soon"}}) {
    std::vector<std::string> all = {"cache"};
    all.insert(all.end(), wrong.begin(), wrong.end());
    const auto done = jitc(all);
    EXPECT_EQ(done.exit_code, 2);
    EXPECT_NE(done.err, "");
  }
}

}  // namespace
}  // namespace jitc
