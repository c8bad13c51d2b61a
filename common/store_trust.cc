#include "common/store_trust.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "common/files.h"

namespace jitc::common {
namespace {

constexpr int kMostLinks = 40;  // as the kernel counts

bool others_may_write(const struct stat& status) { return (status.st_mode & (S_IWGRP | S_IWOTH)) != 0; }
bool is_sticky(const struct stat& status) { return (status.st_mode & S_ISVTX) != 0; }

// In a container whose user namespace knows this user alone, root's directories seem to belong to nobody.
bool is_unmapped(uid_t uid) {
  static const bool maps_all = [] {
    const auto map = read_file("/proc/self/uid_map");
    return !map || map->find("4294967295") != std::string::npos;
  }();
  static const uid_t nobody = overflow_uid();
  return !maps_all && uid == nobody;
}

std::string of_uid(uid_t uid) { return "it belongs to uid " + std::to_string(uid); }

constexpr const char* kUseAnother = "use a store in a directory of your own (JITC_STORE)";
constexpr const char* kCloseIt = "chmod go-w";  // the thing

std::unexpected<Error> refused(std::string message, const std::string& thing, const std::string& remedy) {
  return fail(ErrorKind::kRefused, std::move(message), thing,
              (remedy == kCloseIt ? remedy + " " + thing : remedy) +
                  ", or declare that you trust all who may write it (JITC_STORE_ALLOW_SHARED=1)");
}

// The owner of a layer that the settings name, if there is one.
std::optional<uid_t> owner_of_layer(const StoreLayer& layer) {
  struct stat status{};
  if (layer.trust != Trust::kOwner || layer.owner || ::stat(layer.path.c_str(), &status) != 0) return layer.owner;
  return status.st_uid;
}

class Walk {
 public:
  explicit Walk(const StoreLayer& layer) : layer_(layer), owner_(owner_of_layer(layer)) {}

  std::optional<uid_t> owner() const { return owner_; }

  Result<std::string> go() {
    std::error_code error;
    const std::string path = std::filesystem::absolute(layer_.path, error).string();
    if (error || path.empty())
      return fail(ErrorKind::kUsage, "no absolute path, and no working directory", layer_.path);
    push(path);
    if (auto root = go_to(""); !root) return std::unexpected(root.error());
    while (!rest_.empty()) {
      const std::string name = std::move(rest_.back());
      rest_.pop_back();
      const auto gone = name == ".." ? go_to(at_.substr(0, at_.empty() ? 0 : at_.rfind('/'))) : step(at_ + "/" + name);
      if (!gone) return std::unexpected(gone.error());
    }
    return at_.empty() ? "/" : at_;
  }

 private:
  // The components of `path` come next.
  void push(const std::string& path) {
    std::vector<std::string> names;
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      std::string name = path.substr(begin, end - begin);
      if (!name.empty() && name != ".") names.push_back(std::move(name));
      begin = end + 1;
    }
    rest_.insert(rest_.end(), std::make_move_iterator(names.rbegin()), std::make_move_iterator(names.rend()));
  }

  Result<void> step(std::string next) {
    struct stat status{};
    if (::lstat(next.c_str(), &status) != 0) {
      if (errno == ENOENT && exists_ && anybody_may_make_it_ && layer_.trust == Trust::kOwner)
        return not_believed("it does not exist, and everybody may make it", next);
      exists_ = false;
      at_ = std::move(next);
      return {};
    }
    if (S_ISLNK(status.st_mode)) return follow(next, status);
    if (auto looked = judge(next, status); !looked) return looked;
    at_ = std::move(next);
    return {};
  }

  // Whoever owns the link says where it leads; whoever may replace it was looked at with the directory it is in.
  Result<void> follow(const std::string& link, const struct stat& status) {
    if (layer_.trust == Trust::kOwn && rest_.empty() && links_ == 0)
      return not_believed("a symbolic link, which may lead anywhere", link);
    if (auto looked = judge_owner(link, status); !looked) return looked;
    std::error_code error;
    const std::string target = std::filesystem::read_symlink(link, error).string();
    if (++links_ > kMostLinks || error)
      return fail(ErrorKind::kStoreUnavailable, "the symbolic link cannot be followed", link, "name another directory");
    push(target);
    return target.starts_with('/') ? go_to("") : Result<void>();
  }

  // One that was passed already, or the root.
  Result<void> go_to(std::string directory) {
    at_ = std::move(directory);
    struct stat status{};
    const std::string path = at_.empty() ? "/" : at_;
    anybody_may_make_it_ = false;
    if (::lstat(path.c_str(), &status) != 0) return {};
    return judge(path, status);
  }

  Result<void> judge(const std::string& directory, const struct stat& status) {
    if (!S_ISDIR(status.st_mode)) {  // on the way: what uses the path hears it
      if (rest_.empty()) return not_believed("not a directory", directory);
      return {};
    }
    if (auto looked = judge_owner(directory, status); !looked) return looked;
    if (others_may_write(status) && !is_sticky(status))
      return not_believed("others may write into it, and so replace the store", directory, kCloseIt);
    anybody_may_make_it_ = others_may_write(status);
    return {};
  }

  Result<void> judge_owner(const std::string& path, const struct stat& status) const {
    const uid_t uid = status.st_uid;
    if (uid == ::geteuid() || uid == 0) return {};
    if (anybody_may_make_it_) return not_believed(of_uid(uid) + ", in a directory where everybody may make one", path);
    if (uid == owner_ || is_unmapped(uid)) return {};
    return not_believed(of_uid(uid) + ", who may replace the store", path);
  }

  Result<void> not_believed(std::string why, const std::string& thing, std::string remedy = kUseAnother) const {
    if (layer_.trust == Trust::kEverybody) return {};
    return refused(std::move(why), thing, remedy);
  }

  const StoreLayer& layer_;
  const std::optional<uid_t> owner_;
  std::string at_;                 // without links; empty: the root
  std::vector<std::string> rest_;  // the next component last
  int links_ = 0;
  bool exists_ = true;
  bool anybody_may_make_it_ = false;  // what is in `at_`
};

}  // namespace

Result<std::string> resolve_store(const StoreLayer& layer) { return Walk(layer).go(); }

Result<StoreLayer> open_layer(StoreLayer layer) {
  Walk walk(layer);
  auto path = walk.go();
  if (!path) return std::unexpected(std::move(path.error()));
  layer.owner = walk.owner();
  layer.path = std::move(*path);
  return layer;
}

Believed::Believed(const StoreLayer& layer)
    : trust_(layer.trust), owner_(layer.trust == Trust::kOwner ? layer.owner.value_or(::geteuid()) : ::geteuid()) {}

bool Believed::owner(uid_t uid) const {
  return trust_ == Trust::kEverybody || uid == ::geteuid() || uid == 0 || uid == owner_;
}

std::string Believed::doubt(const struct stat& status) const {
  if (trust_ == Trust::kEverybody) return {};
  if (!owner(status.st_uid)) return of_uid(status.st_uid);
  return others_may_write(status) ? "others may write it" : "";
}

Result<void> check_inside(const StoreLayer& layer, const std::string& directory) {
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be looked at", directory);
  }
  if (!S_ISDIR(status.st_mode)) return refused("not a directory", directory, kUseAnother);
  const Believed believed(layer);
  if (std::string doubt = believed.doubt(status); !doubt.empty())
    return refused(std::move(doubt), directory, believed.owner(status.st_uid) ? kCloseIt : kUseAnother);
  return {};
}

}  // namespace jitc::common
