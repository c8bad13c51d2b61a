// What lies below a directory, as a compiler that includes from it may find it.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

namespace jitc::service {

// A regular file, or a symbolic link that leads to a directory or nowhere.
struct TreeEntry {
  std::string name;  // relative to the tree's directory
  struct stat status{};
  std::string target;  // of such a link
};

struct FileTree {
  std::vector<TreeEntry> entries;  // in an order that does not depend on the file system
  bool whole = true;               // false: some of it could not be seen, so that nobody knows what it is
};

// Links to directories are followed, each directory is read once. A directory that is not there is empty; what this
// user cannot open is left out, as a compiler of this user cannot open it either.
FileTree read_tree(const std::string& directory);

}  // namespace jitc::service
