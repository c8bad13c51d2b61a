// The store's directories: who may write them, and making them again when somebody removed them all.
#pragma once

#include <sys/types.h>

#include <initializer_list>
#include <string>

#include "common/digest.h"
#include "common/error.h"
#include "common/store_trust.h"
#include "daemon/store/file_system.h"

namespace jitc::store {

class Directories {
 public:
  // `mode` of files; directories get search permission for whoever may read. A file's mode that lets the group do more
  // than all others makes it a group's store: what is made in its directories is of their group (setgid). In a layer
  // that believes everybody they also get what the store's own directory gives to group and others: whoever may write
  // there may write into all of them, whatever the settings of the one who came first.
  Directories(FileSystem& files, common::StoreLayer layer, mode_t mode);

  // Makes what is absent. kRefused when others could have put something into the store; kStoreUnavailable, kStoreFull.
  common::Result<void> make();
  // Where the entry of this key goes, and its lease.
  common::Result<void> make_shard(const common::Digest& key) { return make_inside(shard(key)); }
  common::Result<void> make_quarantine() { return make_inside(quarantine()); }

  // Before these are written into: real directories, not links, that nobody else can have made, or absent, and the way
  // to the store as when it was opened. kRefused.
  common::Result<void> check_publish(const common::Digest& key) const {
    return check({version(), temps(), shard(key)});
  }
  common::Result<void> check_care() const { return check({version(), temps(), quarantine()}); }

  const common::StoreLayer& layer() const { return layer_; }
  const std::string& store() const { return layer_.path; }
  std::string version() const { return store() + "/v1"; }
  std::string temps() const { return version() + "/tmp"; }
  std::string quarantine() const { return version() + "/quarantine"; }
  std::string shard(const common::Digest& key) const { return version() + "/" + key.hex().substr(0, 2); }
  mode_t file_mode() const { return file_mode_; }

 private:
  common::Result<void> make_one(const std::string& path);
  mode_t mode_for(const std::string& path) const;
  common::Result<void> make_inside(const std::string& path);
  common::Result<void> check(std::initializer_list<std::string> paths) const;

  FileSystem& files_;
  common::StoreLayer layer_;
  mode_t file_mode_;
  mode_t directory_mode_;
};

// `error` as the file system gives it: kStoreFull when there is no room, else kStoreUnavailable.
std::unexpected<common::Error> store_error(int error, std::string what, const std::string& path);

}  // namespace jitc::store
