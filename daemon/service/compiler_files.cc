#include "daemon/service/compiler_files.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "common/file_digest.h"
#include "common/programs.h"
#include "common/utf8.h"
#include "daemon/service/children.h"

namespace jitc::service {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::Hasher;
using common::is_elf;
using common::is_program;

// The shared libraries that a program gets here, as the dynamic loader says: "name => path (address)". A compiler may
// be a few kilobytes, and all of it in such a library.
std::vector<std::string> libraries_of(const std::string& program, const std::vector<std::string>& driver) {
  std::vector<std::string> libraries;
  if (!is_elf(program)) return libraries;
  std::vector<std::string> words(driver.begin(), driver.end() - 1);
  if (words.empty()) words.emplace_back("/usr/bin/env");
  words.insert(words.end(), {"LD_TRACE_LOADED_OBJECTS=1", program});
  std::istringstream lines(answer_of(std::move(words)));
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find('/');
    const auto end = line.rfind(" (0x");
    if (begin != line.npos && end != line.npos && begin < end) libraries.push_back(line.substr(begin, end - begin));
  }
  return libraries;
}

std::string answer_of_driver(const std::vector<std::string>& driver, std::string question) {
  std::vector<std::string> words = driver;
  words.push_back(std::move(question));
  return without_blanks_around(answer_of(std::move(words)));
}

}  // namespace

std::string find_program(const std::string& name, const std::string& directories) {
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

std::string without_blanks_around(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  text.erase(0, text.find_first_not_of(' '));
  return text;
}

std::vector<std::string> files_of_compiler(const std::vector<std::string>& driver, const std::string& directories,
                                           std::span<const char* const> helpers, std::span<const char* const> parts) {
  std::vector<std::string> programs{driver.back()};
  for (const char* helper : helpers) {
    const std::string path =
        find_program(answer_of_driver(driver, std::string("-print-prog-name=") + helper), directories);
    if (!path.empty()) programs.push_back(path);
  }
  std::set<std::string> libraries;
  std::error_code ignored;  // what is not there is no file
  for (const auto& program : programs) {
    const auto own = libraries_of(program, driver);
    libraries.insert(own.begin(), own.end());
  }
  for (const char* part : parts) {
    const std::string path = answer_of_driver(driver, std::string("-print-file-name=") + part);
    if (path.starts_with('/') && fs::is_regular_file(path, ignored)) libraries.insert(path);
  }
  programs.insert(programs.end(), libraries.begin(), libraries.end());
  return programs;
}

void add_stat(Hasher& hasher, const std::string& name, const struct stat& status, bool inode) {
  hasher.text("name", name).number("size", static_cast<std::uint64_t>(status.st_size));
  hasher.number("seconds", static_cast<std::uint64_t>(status.st_mtim.tv_sec));
  if (!inode) return;
  hasher.number("nanoseconds", static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
  hasher.number("changed", static_cast<std::uint64_t>(status.st_ctim.tv_sec));
  hasher.number("changed nanoseconds", static_cast<std::uint64_t>(status.st_ctim.tv_nsec));
  hasher.number("inode", status.st_ino).number("device", status.st_dev);
}

bool add_content(Hasher& hasher, const std::string& name, const std::string& path) {
  const auto content = common::sha256_of_file(path);
  hasher.text("name", name).digest("content", content.value_or(Digest{}));
  return content || access(path.c_str(), R_OK) != 0;
}

}  // namespace jitc::service
