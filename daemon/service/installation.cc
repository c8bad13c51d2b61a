#include "daemon/service/installation.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/file_digest.h"
#include "common/utf8.h"
#include "daemon/observe/log.h"
#include "daemon/service/children.h"
#include "daemon/service/file_tree.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::Hasher;

constexpr const char* kHelpers[] = {"cc1", "as", "ld", "collect2", "lto1"};
constexpr const char* kParts[] = {"libgcc.a", "liblto_plugin.so"};  // what they link in or load by themselves
constexpr const char* kCompilersPath =
    "/usr/local/bin:/usr/bin:/bin";  // as the worker sets it: they find helpers there

bool is_program(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

std::string find_on_path(const std::string& name, const std::string& directories) {
  if (name.find('/') != name.npos) return is_program(name) ? name : std::string();
  for (std::size_t begin = 0; begin <= directories.size();) {
    const std::size_t end = std::min(directories.find(':', begin), directories.size());
    const std::string candidate = directories.substr(begin, end - begin) + "/" + name;
    // The worker is told of it in a message, whose texts are UTF-8.
    if (candidate[0] == '/' && common::is_utf8(candidate) && is_program(candidate)) return candidate;
    begin = end + 1;
  }
  return {};
}

std::string find_compiler(const std::string& name) {
  const char* path = std::getenv("PATH");
  return find_on_path(name, path != nullptr ? path : kCompilersPath);
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

bool is_elf(const std::string& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::string_view(magic.data(), magic.size()) == "\177ELF";
}

// The shared libraries that a program gets here, as the dynamic loader says: "name => path (address)". A compiler may
// be a few kilobytes, and all of it in such a library.
std::vector<std::string> libraries_of(const std::string& program) {
  std::vector<std::string> libraries;
  if (!is_elf(program)) return libraries;
  std::istringstream lines(answer_of({"/usr/bin/env", "LD_TRACE_LOADED_OBJECTS=1", program}));
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find('/');
    const auto end = line.rfind(" (0x");
    if (begin != line.npos && end != line.npos && begin < end) libraries.push_back(line.substr(begin, end - begin));
  }
  return libraries;
}

// The driver, the programs that it runs, and what these are linked with.
std::vector<std::string> programs_of(const std::string& driver) {
  std::vector<std::string> programs{driver};
  for (const char* helper : kHelpers) {
    const std::string name = trimmed(answer_of({driver, std::string("-print-prog-name=") + helper}));
    const std::string path = find_on_path(name, kCompilersPath);
    if (!path.empty()) programs.push_back(path);
  }
  std::set<std::string> libraries;
  std::error_code ignored;  // what is not there is no file
  for (const auto& program : programs) {
    const auto own = libraries_of(program);
    libraries.insert(own.begin(), own.end());
  }
  for (const char* part : kParts) {
    const std::string path = trimmed(answer_of({driver, std::string("-print-file-name=") + part}));
    if (path.starts_with('/') && fs::is_regular_file(path, ignored)) libraries.insert(path);
  }
  programs.insert(programs.end(), libraries.begin(), libraries.end());
  return programs;
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
    directories.push_back(trimmed(text.substr(line, stop - line)));
    line = stop + 1;
  }
  return directories;
}

// Size and time of change of a file: equal between two readings unless somebody takes pains. `inode`: also what only
// this node knows.
void add_stat(Hasher& hasher, const std::string& name, const struct stat& status, bool inode) {
  hasher.text("name", name).number("size", static_cast<std::uint64_t>(status.st_size));
  hasher.number("seconds", static_cast<std::uint64_t>(status.st_mtim.tv_sec));
  if (!inode) return;
  hasher.number("nanoseconds", static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  hasher.number("changed", static_cast<std::uint64_t>(status.st_ctim.tv_sec));
  hasher.number("changed nanoseconds", static_cast<std::uint64_t>(status.st_ctim.tv_nsec));
  hasher.number("inode", status.st_ino).number("device", status.st_dev);
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

// False when there is a file that cannot be read although this user may.
bool add_content(Hasher& hasher, const std::string& name, const std::string& path) {
  const auto content = common::sha256_of_file(path);
  hasher.text("name", name).digest("content", content.value_or(Digest{}));
  return content || access(path.c_str(), R_OK) != 0;
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
      const auto& one = found.emplace_back(name, path, programs_of(path), system_includes(path));
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
