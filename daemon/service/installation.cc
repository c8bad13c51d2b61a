#include "daemon/service/installation.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "daemon/observe/log.h"
#include "daemon/service/children.h"
#include "daemon/service/compiler_files.h"
#include "daemon/service/file_tree.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::Hasher;

// What external compiles run, and what these link in or load by themselves.
constexpr auto kHelpers = std::to_array<const char*>({"cc1", "as", "ld", "collect2", "lto1"});
constexpr auto kParts = std::to_array<const char*>({"libgcc.a", "liblto_plugin.so"});

std::string find_compiler(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_program(name, path != nullptr ? path : kCompilersPath);
}

// "#include <...> search starts here:" of `driver -E -v`.
std::vector<std::string> system_includes(const std::string& driver) {
  const std::string text = answer_of({driver, "-E", "-v", "-x", "c", "/dev/null"});
  const auto begin = text.find("> search starts here:\n");
  const auto end = text.find("End of search list", begin);
  std::vector<std::string> directories;
  if (begin == text.npos || end == text.npos) return directories;
  for (std::size_t line = text.find('\n', begin) + 1; line < end;) {
    const std::size_t stop = text.find('\n', line);
    directories.push_back(without_blanks_around(text.substr(line, stop - line)));
    line = stop + 1;
  }
  return directories;
}

// False when it could not be seen whole.
bool add_tree_stats(Hasher& hasher, const std::string& directory, bool inode) {
  const FileTree tree = read_tree(directory);
  hasher.text("directory", directory).number("whole", tree.whole ? 1 : 0).list("entries", tree.entries.size());
  for (const auto& entry : tree.entries) {
    add_stat(hasher, entry.name, entry.status, inode);
    hasher.text("target", entry.target);
  }
  return tree.whole;
}

// The system's headers are many: names, sizes and times, which packages give every node alike, stand for contents.
std::string identity_of(const std::vector<std::string>& programs, const std::vector<std::string>& system_includes) {
  Hasher hasher("jitc external compiler 2");
  bool whole = true;
  for (const auto& program : programs) whole &= add_content(hasher, fs::path(program).filename().string(), program);
  for (const auto& directory : system_includes) whole &= add_tree_stats(hasher, directory, false);
  return whole ? hasher.finish().hex() : std::string();
}

std::string content_digest(const std::string& root) {
  Hasher hasher("jitc include root 2");
  const FileTree tree = read_tree(root);
  bool whole = tree.whole;
  for (const auto& entry : tree.entries) {
    if (!entry.target.empty()) {
      hasher.text("link", entry.name).text("target", entry.target);
    } else {
      whole &= add_content(hasher, entry.name, root + "/" + entry.name);
    }
  }
  return whole ? hasher.finish().hex() : std::string();
}

}  // namespace

Installation::Installation(std::vector<std::string> compilers, std::vector<std::string> include_roots)
    : compiler_paths_(std::move(compilers)), root_paths_(std::move(include_roots)) {
  if (std::find(compiler_paths_.begin(), compiler_paths_.end(), "gcc") == compiler_paths_.end()) {
    compiler_paths_.insert(compiler_paths_.begin(), "gcc");
  }
}

void Installation::inspect() {
  compilers_.clear();
  roots_.clear();
  files_.clear();
  system_includes_.clear();
  struct Found {
    std::string name, path;
    std::vector<std::string> programs, system_includes;
  };
  std::vector<Found> found;
  for (const auto& name : compiler_paths_) {
    const std::string path = find_compiler(name);
    if (!path.empty()) {
      const auto& one = found.emplace_back(name, path, files_of_compiler({path}, kCompilersPath, kHelpers, kParts),
                                           system_includes(path));
      files_.insert(files_.end(), one.programs.begin(), one.programs.end());
      system_includes_.insert(one.system_includes.begin(), one.system_includes.end());
    } else if (name != "gcc") {
      observe::log_warning("compiler left out: not an executable", {{"compiler", name}});
    }
  }
  // Before the contents are read: a change in between shows as one at the next look.
  seen_ = fingerprint(std::chrono::steady_clock::now());
  bool whole = true;
  for (const auto& one : found) {
    compilers_.push_back({one.name, one.path, identity_of(one.programs, one.system_includes)});
    whole &= !compilers_.back().identity.empty();
  }
  for (const auto& root : root_paths_) {
    roots_.emplace_back(root, content_digest(root));
    whole &= !roots_.back().second.empty();
    if (roots_.back().second.empty()) observe::log_warning("include root not read whole", {{"directory", root}});
  }
  if (!whole) seen_ = {};  // to be tried again
}

std::vector<common::CompilerIdentity> Installation::offered() const {
  std::vector<common::CompilerIdentity> offered;
  for (const auto& name : compiler_paths_) {
    const std::string path = find_compiler(name);
    if (!path.empty()) offered.push_back({name, path, {}});
  }
  return offered;
}

bool Installation::changed(Time fresh) { return seen_ == Digest{} || fingerprint(fresh) != seen_; }

Digest Installation::fingerprint(Time fresh) {
  Hasher hasher("jitc installation 2");
  for (const auto& file : files_) {
    struct stat status{};
    hasher.number("there", stat(file.c_str(), &status) == 0 ? 1 : 0);
    add_stat(hasher, file, status, true);
  }
  for (const auto& root : root_paths_) add_tree_stats(hasher, root, true);
  hasher.digest("system headers", system_headers(fresh));
  return hasher.finish();
}

const Digest& Installation::system_headers(Time fresh) {
  if (system_looked_ >= fresh) return system_seen_;
  system_looked_ = std::chrono::steady_clock::now();
  Hasher hasher("jitc system headers 1");
  for (const auto& directory : system_includes_) add_tree_stats(hasher, directory, true);
  system_seen_ = hasher.finish();
  return system_seen_;
}

}  // namespace jitc::service
