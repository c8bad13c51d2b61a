#include "daemon/store/directories.h"

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "common/files.h"

namespace jitc::store {
namespace {

using common::ErrorKind;
using common::Result;

constexpr mode_t kHandedOn = S_ISGID | S_IRWXG | S_IRWXO;

// Search permission for whoever may read. Where the group may do more than all others it is the store's group that
// counts, whoever of it writes: what is made inside takes it over from the directory.
mode_t directory_mode_for(mode_t files) {
  const bool for_group = ((files >> 3) & 07) != (files & 07);
  return files | ((files & 0444) >> 2) | (for_group ? S_ISGID : 0U);
}

}  // namespace

std::unexpected<common::Error> store_error(int error, std::string what, const std::string& path) {
  const ErrorKind kind = common::write_error_kind(error);
  return common::fail_errno(kind, error, std::move(what), path,
                            kind == ErrorKind::kStoreFull
                                ? "make room, or name another store (JITC_STORE)"
                                : "see that the directory exists and can be written, or name another (JITC_STORE)");
}

Directories::Directories(FileSystem& files, common::StoreLayer layer, mode_t mode)
    : files_(files),
      layer_(std::move(layer)),
      file_mode_(mode & 0666),
      directory_mode_(directory_mode_for(file_mode_)) {}

// The umask does not decide about the store: the mode is set again on what was made here. What another daemon made at
// the same moment is of its setting.
Result<void> Directories::make_one(const std::string& path) {
  const mode_t mode = mode_for(path);
  int error = files_.mkdir(path, mode);
  if (error == -EEXIST) return {};
  if (error == 0) error = files_.chmod(path, mode);
  if (error < 0) {
    FileInfo info;  // a directory that exists may answer EROFS or EACCES
    if (files_.status(path, info) != 0) return store_error(-error, "the directory cannot be made", path);
  }
  return {};
}

mode_t Directories::mode_for(const std::string& path) const {
  FileInfo top;
  if (layer_.trust != common::Trust::kEverybody || path == store() || files_.status(store(), top) != 0)
    return directory_mode_;
  return directory_mode_ | (top.mode & kHandedOn);
}

Result<void> Directories::make() {
  if (const std::size_t slash = store().rfind('/'); slash != std::string::npos && slash != 0) {
    if (auto made = common::make_directories(store().substr(0, slash)); !made) return made;
  }
  if (auto made = make_one(store()); !made) return made;
  // Before anything is put into it: after a wipe somebody else may have made it.
  if (auto checked = common::resolve_store(layer_); !checked) return std::unexpected(checked.error());
  for (const std::string& path : {version(), temps()}) {
    if (auto made = make_inside(path); !made) return made;
  }
  return check_care();
}

Result<void> Directories::make_inside(const std::string& path) {
  if (auto made = make_one(path); !made) return made;
  return common::check_inside(layer_, path);
}

Result<void> Directories::check(std::initializer_list<std::string> paths) const {
  if (auto way = common::resolve_store(layer_); !way) return std::unexpected(way.error());
  for (const std::string& path : paths) {
    if (auto checked = common::check_inside(layer_, path); !checked) return checked;
  }
  return {};
}

}  // namespace jitc::store
