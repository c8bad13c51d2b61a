#include "daemon/store/directories.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "common/files.h"

namespace jitc::store {
namespace {

using common::ErrorKind;
using common::Result;

// Whoever may rename the directory may replace it. Sticky directories forbid that; groups on the way are the site's.
Result<void> check_parents(const std::string& directory) {
  for (std::size_t slash = directory.rfind('/'); slash != 0 && slash != std::string::npos;
       slash = directory.rfind('/', slash - 1)) {
    const std::string parent = directory.substr(0, slash);
    struct stat status{};
    if (::stat(parent.c_str(), &status) != 0) continue;
    if ((status.st_mode & S_IWOTH) == 0 || (status.st_mode & S_ISVTX) != 0) continue;
    return common::fail(ErrorKind::kRefused, "everybody may write into " + parent + ", and so replace the store",
                        directory, "use a store in a directory of your own (JITC_STORE)");
  }
  return {};
}

}  // namespace

std::unexpected<common::Error> store_error(int error, std::string what, const std::string& path) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return common::fail_errno(full ? ErrorKind::kStoreFull : ErrorKind::kStoreUnavailable, error, std::move(what), path,
                            full ? "make room, or name another store (JITC_STORE)"
                                 : "see that the directory exists and can be written, or name another (JITC_STORE)");
}

Directories::Directories(FileSystem& files, std::string store, mode_t mode, bool allow_shared)
    : files_(files),
      store_(std::move(store)),
      file_mode_(mode & 0666),
      directory_mode_(file_mode_ | ((file_mode_ & 0444) >> 2)),
      allow_shared_(allow_shared) {}

// The umask does not decide about the store: the mode is set again on what was made here. What another daemon made at
// the same moment is of its setting.
Result<void> Directories::make_one(const std::string& path) {
  int error = files_.mkdir(path, directory_mode_);
  if (error == -EEXIST) return {};
  if (error == 0) error = files_.chmod(path, directory_mode_);
  if (error < 0) {
    FileInfo info;  // a directory that exists may answer EROFS or EACCES
    if (files_.status(path, info) != 0) return store_error(-error, "the directory cannot be made", path);
  }
  return {};
}

Result<void> Directories::make() {
  if (const std::size_t slash = store_.rfind('/'); slash != std::string::npos && slash != 0) {
    if (auto made = common::make_directories(store_.substr(0, slash)); !made) return made;
  }
  if (auto made = make_one(store_); !made) return made;
  // Before anything is put into it: after a wipe somebody else may have made it.
  if (auto checked = check(); !checked) return checked;
  for (const std::string& path : {version(), temps()}) {
    if (auto made = make_one(path); !made) return made;
  }
  return {};
}

Result<void> Directories::check() const {
  if (allow_shared_) return {};
  if (auto checked = common::check_private_directory(store_); !checked) return checked;
  return check_parents(store_);
}

}  // namespace jitc::store
