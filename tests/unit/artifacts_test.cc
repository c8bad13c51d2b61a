// The daemon's care for its store: beside its service, never before it.
#include "daemon/service/artifacts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/owner.h"
#include "tests/support/store_fixture.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::IsEmpty;
using ::testing::Ne;
using testing::StoreTest;

class ArtifactsTest : public StoreTest {
 protected:
  // Every look at a directory waits until the test lets it go on.
  void hold_scans() {
    files_.before = [this, go_on = go_on_.get_future().share()](const std::string& operation) {
      if (operation != "list") return;
      {
        const std::lock_guard lock(mutex_);
        scanners_.push_back(std::this_thread::get_id());
        if (scanners_.size() == 1) scanning_.set_value();
      }
      go_on.wait();
    };
  }
  void start(store::Options options) {
    auto store = open(std::move(options));
    store_ = store.get();
    artifacts_ = std::make_unique<Artifacts>(std::move(store));
  }
  std::string leave_temp() {
    common::Owner dead = common::Owner::this_process();
    dead.start += 1;
    const std::string path = temps() + "/" + common::temp_name(dead);
    overwrite(path, "partial");
    return path;
  }

  std::mutex mutex_;
  std::vector<std::thread::id> scanners_;
  std::promise<void> scanning_, go_on_;
  store::Store* store_ = nullptr;
  std::unique_ptr<Artifacts> artifacts_;
};

TEST_F(ArtifactsTest, WhileTheStoreIsGoneThroughItServes) {
  start(options());
  ASSERT_TRUE(publish(*store_, key_of(1)));
  const std::string temp = leave_temp();
  hold_scans();
  std::promise<void> recalled;
  artifacts_->begin_care([&](const auto&) { recalled.set_value(); });
  scanning_.get_future().wait();
  EXPECT_NE(artifacts_->look_up(key_of(1)), nullptr);
  ASSERT_TRUE(publish(*store_, key_of(2)));
  const auto product = artifacts_->look_up(key_of(2));
  ASSERT_NE(product, nullptr);
  artifacts_->settle(*product);
  EXPECT_TRUE(fs::exists(temp));

  go_on_.set_value();
  recalled.get_future().wait();
  artifacts_->end_care();
}

TEST_F(ArtifactsTest, WhatIsRecalledComesBeforeAnythingGoes) {
  start(options());
  ASSERT_TRUE(publish(*store_, key_of(1)));
  const std::string temp = leave_temp();
  std::promise<void> cleaning;
  bool is_recalled = false;
  files_.before = [&](const std::string& operation) {
    if (operation != "unlink") return;
    EXPECT_TRUE(is_recalled);
    cleaning.set_value();
  };
  artifacts_->begin_care([&](const auto&) { is_recalled = true; });
  cleaning.get_future().wait();
  artifacts_->end_care();
  EXPECT_FALSE(fs::exists(temp));
}

TEST_F(ArtifactsTest, NoThreadThatSettlesAPublishCleans) {
  store::Options few = options();
  few.max_entries = 1;
  start(few);
  hold_scans();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(publish(*store_, key_of(i)));
    const auto product = artifacts_->look_up(key_of(i));
    ASSERT_NE(product, nullptr);
    artifacts_->settle(*product);  // would wait for ever
  }
  scanning_.get_future().wait();
  EXPECT_TRUE(store_->wants_cleaning());
  go_on_.set_value();
  artifacts_->end_care();
  EXPECT_THAT(scanners_, Each(Ne(std::this_thread::get_id())));
}

TEST_F(ArtifactsTest, NoCareBeginsAfterItsEnd) {
  start(options());
  ASSERT_TRUE(publish(*store_, key_of(1)));
  leave_temp();
  artifacts_->end_care();
  hold_scans();
  artifacts_->begin_care([](const auto&) { ADD_FAILURE(); });
  artifacts_->end_care();
  EXPECT_THAT(scanners_, IsEmpty());
}

}  // namespace
}  // namespace jitc::service
