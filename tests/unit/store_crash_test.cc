// Whatever the store does, process or machine may end before any of its calls, and lose what was not synced. Afterwards
// every final name verifies or is found broken at the first look, put away and built again; no key and no lease is lost
// for ever; and what was left can be collected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/owner.h"
#include "tests/support/crashing_file_system.h"
#include "tests/support/store_fixture.h"

namespace jitc::store {
namespace {

namespace fs = std::filesystem;
using common::LookupOutcome;
using testing::CrashingFileSystem;
using ::testing::IsEmpty;
using testing::StoreTest;
using Loss = CrashingFileSystem::Loss;
using namespace std::chrono_literals;

const std::vector<Loss> kAll{Loss::kNothing, Loss::kBytes, Loss::kTail, Loss::kPages, Loss::kNames};
// Of what writes a line at most.
const std::vector<Loss> kOfSmallFiles{Loss::kNothing, Loss::kBytes, Loss::kNames};
// Of what writes nothing.
const std::vector<Loss> kOfNames{Loss::kNothing, Loss::kNames};

class CrashTest : public StoreTest {
 protected:
  static constexpr int kKeys = 2;

  void leave_broken(int number) {
    broken_ = number;
    fs::create_directories(fs::path(path_of(key_of(number))).parent_path());
    overwrite(path_of(key_of(number)), "half a file");
  }
  // Of a process of this node that has ended.
  static std::string dead_name() {
    common::Owner owner = common::Owner::this_process();
    owner.start += 1;
    return common::temp_name(owner);
  }

  // Runs `work` in a child that ends before its call `at`. False: there were no more calls, it ended behind them.
  bool run_until(unsigned at, Loss loss, const std::function<void(Store&)>& work) {
    const pid_t child = ::fork();
    if (child == 0) {
      CrashingFileSystem files(options().directory, loss, at);
      Options some = options();
      some.max_entries = 1;
      const auto store = Store::open(some, files);
      if (!store) ::_exit(1);
      work(**store);
      files.crash(CrashingFileSystem::kDone);
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_TRUE(WEXITSTATUS(status) == CrashingFileSystem::kStopped || WEXITSTATUS(status) == CrashingFileSystem::kDone)
        << WEXITSTATUS(status);
    return WEXITSTATUS(status) == CrashingFileSystem::kStopped;
  }

  void expect_recovery(Loss loss) {
    const auto store = open();
    for (int number = 0; number < kKeys; ++number) {
      const common::Digest key = key_of(number);
      const bool was_there = fs::exists(path_of(key));
      const LookupOutcome outcome = look_up(*store, key);
      EXPECT_EQ(outcome == LookupOutcome::kAbsent, !was_there);
      EXPECT_TRUE(outcome != LookupOutcome::kCorrupt || loss != Loss::kNothing || number == broken_);
      EXPECT_EQ(fs::exists(path_of(key)), outcome == LookupOutcome::kFound) << "what is broken is put away";
      Claim claim = store->leases().claim(key);
      // As an observer does who has seen no beat for long.
      if (claim.kind == Claim::Kind::kTheirs) claim = store->leases().take_over(key, claim.text);
      EXPECT_EQ(claim.kind, outcome == LookupOutcome::kFound ? Claim::Kind::kPublished : Claim::Kind::kOurs);
      ASSERT_TRUE(publish(*store, key));
      EXPECT_TRUE(is_published(key));
      store->leases().release(key, claim.text);
    }
    files_.clock = std::chrono::system_clock::now() + 25h;
    store->clean();
    EXPECT_THAT(files_in(temps()), IsEmpty());
    EXPECT_THAT(leases(), IsEmpty());
    files_.clock.reset();
  }

  // Of each loss, before each call.
  void sweep(const std::vector<Loss>& losses, const std::function<void()>& prepare,
             const std::function<void(Store&)>& work) {
    for (const Loss loss : losses) {
      bool stopped = true;
      for (unsigned at = 0; stopped; ++at) {
        SCOPED_TRACE("before call " + std::to_string(at) + ", loss " + std::to_string(static_cast<int>(loss)));
        fs::remove_all(options().directory);
        prepare();
        stopped = run_until(at, loss, work);
        expect_recovery(loss);
        ASSERT_FALSE(HasFailure());
        ASSERT_LT(at, 200U);
      }
    }
  }

  int broken_ = -1;  // was so before
};

TEST_F(CrashTest, APublish) {
  sweep(kAll, [] {}, [](Store& store) { static_cast<void>(publish(store, key_of(1))); });
}

TEST_F(CrashTest, APublishThatIsMadeDurable) {
  sweep(
      kAll, [] {},
      [](Store& store) {
        const auto path = publish(store, key_of(1));
        if (path) static_cast<void>(store.sync(*path));
      });
}

// What was synced is there whatever is lost.
TEST_F(CrashTest, WhatWasSyncedIsNotLost) {
  for (const Loss loss : {Loss::kBytes, Loss::kTail, Loss::kPages, Loss::kNames}) {
    fs::remove_all(options().directory);
    EXPECT_FALSE(run_until(~0U, loss, [](Store& store) {
      const auto path = publish(store, key_of(1));
      if (path) static_cast<void>(store.sync(*path));
      static_cast<void>(publish(store, key_of(2)));
    }));
    EXPECT_EQ(look_up(*open(), key_of(1)), LookupOutcome::kFound);
    EXPECT_NE(look_up(*open(), key_of(2)), LookupOutcome::kFound) << "the model loses what was not synced";
  }
}

TEST_F(CrashTest, APublishOverABrokenEntry) {
  sweep(kAll, [this] { leave_broken(1); }, [](Store& store) { static_cast<void>(publish(store, key_of(1))); });
}

TEST_F(CrashTest, ALookThatPutsABrokenEntryAway) {
  sweep(kOfNames, [this] { leave_broken(1); }, [](Store& store) { look_up(store, key_of(1)); });
}

TEST_F(CrashTest, AnEntryThatIsSetAsideAndMadeAnew) {
  sweep(
      kAll, [this] { static_cast<void>(publish(*open(), key_of(1))); },
      [](Store& store) {
        store.set_aside(key_of(1));
        static_cast<void>(publish(store, key_of(1)));
      });
}

TEST_F(CrashTest, ACleaning) {
  const auto old = std::chrono::system_clock::now() - 48h;
  sweep(
      kOfNames,
      [this, old] {
        const auto store = open();
        for (int number = 0; number < kKeys; ++number) {
          static_cast<void>(publish(*store, key_of(number)));
          set_used(path_of(key_of(number)), old);
        }
        overwrite(temps() + "/" + dead_name(), "half a file");
        fs::create_directories(fs::path(lease_of(key_of(0))).parent_path());
        overwrite(lease_of(key_of(0)), dead_name() + " 7\n");
        fs::create_directories(quarantine());
        for (int i = 0; i < 17; ++i) overwrite(quarantine() + "/" + std::to_string(i), "broken");
      },
      [](Store& store) { store.clean(); });
}

TEST_F(CrashTest, ALeaseFromItsMakingToItsEnd) {
  sweep(
      kOfSmallFiles, [] {},
      [](Store& store) {
        const Claim claim = store.leases().claim(key_of(1));
        store.leases().beat(key_of(1), claim.text, 1);
        static_cast<void>(publish(store, key_of(1)));
        store.leases().release(key_of(1), claim.text);
      });
}

TEST_F(CrashTest, ALeaseThatIsTakenOver) {
  sweep(
      kOfSmallFiles,
      [this] {
        fs::create_directories(fs::path(lease_of(key_of(1))).parent_path());
        fs::create_directories(temps());
        overwrite(lease_of(key_of(1)), dead_name() + " 7\n");
      },
      [](Store& store) {
        const Claim claim = store.leases().claim(key_of(1));
        store.leases().beat(key_of(1), claim.text, 1);
      });
}

}  // namespace
}  // namespace jitc::store
