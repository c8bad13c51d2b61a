// The store's directories: who may write them, and making them again when somebody removed them all.
#pragma once

#include <sys/types.h>

#include <string>

#include "common/digest.h"
#include "common/error.h"
#include "daemon/store/file_system.h"

namespace jitc::store {

class Directories {
 public:
  // `mode` of files; directories get search permission for whoever may read.
  Directories(FileSystem& files, std::string store, mode_t mode, bool allow_shared);

  // Makes what is absent. kRefused when others could have put something into the store; kStoreUnavailable, kStoreFull.
  common::Result<void> make();
  // Where the entry of this key goes.
  common::Result<void> make_shard(const common::Digest& key) { return make_one(shard(key)); }
  common::Result<void> make_quarantine() { return make_one(quarantine()); }
  common::Result<void> make_leases() { return make_one(leases()); }

  const std::string& store() const { return store_; }
  std::string version() const { return store_ + "/v1"; }
  std::string temps() const { return version() + "/tmp"; }
  std::string quarantine() const { return version() + "/quarantine"; }
  std::string leases() const { return version() + "/leases"; }
  std::string shard(const common::Digest& key) const { return version() + "/" + key.hex().substr(0, 2); }
  mode_t file_mode() const { return file_mode_; }

 private:
  common::Result<void> make_one(const std::string& path);
  common::Result<void> check() const;

  FileSystem& files_;
  std::string store_;
  mode_t file_mode_;
  mode_t directory_mode_;
  bool allow_shared_;
};

// `error` as the file system gives it: kStoreFull when there is no room, else kStoreUnavailable.
std::unexpected<common::Error> store_error(int error, std::string what, const std::string& path);

}  // namespace jitc::store
