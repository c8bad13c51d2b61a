// A fresh store whose file system fails on order, and looks at it from outside.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "common/artifact.h"
#include "common/files.h"
#include "daemon/store/store.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_directory.h"

namespace jitc::testing {

class StoreTest : public ::testing::Test {
 protected:
  // Every artifact's image; its key is in the tail.
  static inline const std::string kElf = "\177ELF" + std::string(3000, 'x');
  static std::string tail_of(const common::Digest& key) { return common::make_tail(kElf, {.name = "a test"}, key, 0); }
  static common::Digest key_of(int number) { return common::sha256("key " + std::to_string(number)); }

  static std::string bytes_of(const std::string& path) { return common::read_file(path).value_or(""); }
  static void overwrite(const std::string& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  }
  static mode_t mode_of(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777 : 0;
  }
  static void set_used(const std::string& path, store::FileTime used) {
    const auto since = std::chrono::duration_cast<std::chrono::seconds>(used.time_since_epoch()).count();
    const timespec times[] = {{since, 0}, {since, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  static std::vector<std::string> files_in(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(directory, none))
      names.push_back(entry.path().filename());
    return names;
  }

  store::Options options() { return {.directory = home_.path() + "/store"}; }
  std::unique_ptr<store::Store> open(store::Options options) {
    auto store = store::Store::open(std::move(options), files_);
    EXPECT_TRUE(store) << common::to_line(store.error());
    return store ? std::move(*store) : nullptr;
  }
  std::unique_ptr<store::Store> open() { return open(options()); }
  static common::Result<std::string> publish(store::Store& store, const common::Digest& key) {
    return store.publish(key, kElf, tail_of(key));
  }
  static common::LookupOutcome look_up(store::Store& store, const common::Digest& key) {
    common::StoredArtifact artifact;
    return store.look_up(key, artifact);
  }
  std::string path_of(const common::Digest& key) { return common::artifact_path(options().directory, key); }
  std::string lease_of(const common::Digest& key) {
    std::string path = path_of(key);
    return path.replace(path.rfind('.'), std::string::npos, ".lease");
  }
  std::vector<std::string> leases() {
    std::vector<std::string> names;
    std::error_code none;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(options().directory + "/v1", none))
      if (entry.path().extension() == ".lease") names.push_back(entry.path().filename());
    return names;
  }
  std::string temps() { return options().directory + "/v1/tmp"; }
  std::string quarantine() { return options().directory + "/v1/quarantine"; }
  // Absent, or whole: never anything else under a final name.
  bool is_published(const common::Digest& key) {
    if (!std::filesystem::exists(std::filesystem::symlink_status(path_of(key)))) return false;
    const std::string bytes = bytes_of(path_of(key));
    const auto view = common::verify_artifact(bytes);
    EXPECT_TRUE(view && view->key == key) << "a broken file has a final name";
    return true;
  }

  TemporaryDirectory home_;
  FaultyFileSystem files_;
};

}  // namespace jitc::testing
