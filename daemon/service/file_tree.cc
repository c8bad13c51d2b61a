#include "daemon/service/file_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <set>
#include <utility>

#include "common/files.h"

namespace jitc::service {
namespace {

constexpr std::size_t kMostEntries = 1'000'000;  // a link to the root of the file system, say

struct Name {
  std::string text;
  unsigned char type = DT_UNKNOWN;
};

class Walk {
 public:
  void enter(int parent, const std::string& name, const std::string& prefix) {
    common::Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK));
    if (!fd) return not_opened(parent, name);
    struct stat status{};
    if (::fstat(fd.get(), &status) != 0) return spoil();
    if (!visited_.emplace(status.st_dev, status.st_ino).second) return;  // by another name: a link, or a loop of them
    const std::unique_ptr<DIR, int (*)(DIR*)> directory(::fdopendir(fd.get()), &::closedir);
    if (!directory) return spoil();
    fd.release();
    for (const auto& one : names_in(directory.get())) look_at(::dirfd(directory.get()), one, prefix);
  }

  FileTree take() {
    std::ranges::sort(tree_.entries, {}, &TreeEntry::name);
    return std::move(tree_);
  }

 private:
  void spoil() { tree_.whole = false; }

  void not_opened(int parent, const std::string& name) {
    if (errno == ENOENT || errno == ENOTDIR) return;
    // What cannot be listed but entered has files that a compiler may open by name.
    const bool closed = errno == EACCES && ::faccessat(parent, name.c_str(), X_OK, AT_EACCESS) != 0;
    if (!closed) spoil();
  }

  // Sorted: which of two names of a directory is the first decides under which one its files are told.
  std::vector<Name> names_in(DIR* directory) {
    std::vector<Name> names;
    errno = 0;
    while (const dirent* entry = ::readdir(directory)) {
      const std::string text = entry->d_name;
      if (text != "." && text != "..") names.push_back({text, entry->d_type});
      errno = 0;
    }
    if (errno != 0) spoil();
    std::ranges::sort(names, {}, &Name::text);
    return names;
  }

  void look_at(int parent, const Name& name, const std::string& prefix) {
    if (!tree_.whole) return;
    if (tree_.entries.size() >= kMostEntries) return spoil();
    TreeEntry entry{prefix + name.text, {}, {}};
    const bool link = (name.type == DT_LNK || name.type == DT_UNKNOWN) && read_link(parent, name.text, entry.target);
    const bool there = ::fstatat(parent, name.text.c_str(), &entry.status, 0) == 0;
    // Gone since it was listed, or closed to this user. A link without an end may get one.
    const bool absent = !there && (errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP);
    if (!there && !absent) return spoil();
    const bool directory = there && S_ISDIR(entry.status.st_mode);
    if (there && S_ISREG(entry.status.st_mode)) {
      entry.target.clear();  // its content says all
      tree_.entries.push_back(std::move(entry));
    } else if (link && (directory || !there)) {
      entry.status = {};
      tree_.entries.push_back(std::move(entry));
    }
    if (directory) enter(parent, name.text, prefix + name.text + "/");
  }

  static bool read_link(int parent, const std::string& name, std::string& target) {
    std::array<char, PATH_MAX> text{};
    const ssize_t size = ::readlinkat(parent, name.c_str(), text.data(), text.size());
    if (size > 0) target.assign(text.data(), static_cast<std::size_t>(size));
    return size > 0;
  }

  FileTree tree_;
  std::set<std::pair<dev_t, ino_t>> visited_;
};

}  // namespace

FileTree read_tree(const std::string& directory) {
  Walk walk;
  walk.enter(AT_FDCWD, directory, {});
  return walk.take();
}

}  // namespace jitc::service
