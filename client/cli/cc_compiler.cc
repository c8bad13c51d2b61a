#include "client/cli/cc_compiler.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "client/cli/cc_arguments.h"
#include "common/programs.h"
#include "common/text.h"

namespace jitc::cli {
namespace {

namespace fs = std::filesystem;
using common::is_elf;
using common::is_program;

constexpr const char* kPathWithout = "/usr/local/bin:/usr/bin:/bin";  // of an environment that has none

bool is_this_program(const std::string& path) {
  std::error_code ignored;  // what cannot be looked at is not this
  return fs::equivalent(path, "/proc/self/exe", ignored);
}

struct FoundProgram {
  std::string path;        // absolute; empty: none
  bool is_hidden = false;  // another one of that name stands before it on the PATH: this one
};
FoundProgram find_program(const std::string& name) {
  FoundProgram found;
  std::error_code ignored;  // an empty path is found nowhere
  if (name.find('/') != name.npos) {
    if (is_program(name) && !is_this_program(name)) found.path = fs::absolute(name, ignored).string();
    return found;
  }
  const char* path = std::getenv("PATH");
  for (const auto directory : common::split(path != nullptr ? path : kPathWithout, ':')) {
    const auto candidate = fs::absolute(fs::path(directory.empty() ? "." : directory) / name, ignored).string();
    if (!is_program(candidate)) continue;
    if (is_this_program(candidate)) {
      found.is_hidden = true;
      continue;
    }
    found.path = candidate;
    return found;
  }
  return found;
}

// "gcc" of "x86_64-linux-gnu-gcc-12".
std::string_view kind_of(std::string_view name) {
  if (const auto end = name.find_last_not_of("0123456789."); end != name.npos && name[end] == '-')
    name = name.substr(0, end);
  return name.substr(name.rfind('-') + 1);
}

// By the name of the file itself, behind all links.
bool is_gcc_driver(const std::string& path) {
  std::error_code ignored;  // then it has no name
  const std::string name = fs::canonical(path, ignored).filename().string();
  return (kind_of(name) == "gcc" || kind_of(name) == "g++") && is_elf(path);
}

}  // namespace

bool is_compiler_name(std::string_view name) {
  constexpr auto kNames = std::to_array<std::string_view>({"cc", "c++", "gcc", "g++", "clang", "clang++"});
  return std::ranges::find(kNames, kind_of(name)) != kNames.end();
}

common::Result<CcCompiler> find_compiler(const Context& context, const std::string& name,
                                         std::vector<std::string> words) {
  CcCompiler compiler;
  FoundProgram found;
  compiler.name = name.empty() ? context.settings.text("cc_compiler") : name;
  if (!words.empty() && !words[0].empty() && words[0][0] != '-' && words[0][0] != '@' && !is_input_name(words[0])) {
    found = find_program(words[0]);
    if (!found.path.empty()) {
      compiler.name = words[0];
      words.erase(words.begin());
    }
  }
  if (found.path.empty()) found = find_program(compiler.name);
  compiler.path = found.path;
  if (compiler.path.empty())
    return common::fail(common::ErrorKind::kUsage, "no such compiler is on the PATH", compiler.name,
                        "name one that is: JITC_CC_COMPILER, or the first word behind 'jitc cc'");
  // By its name a driver finds itself on the PATH, and from there what belongs to it.
  if (found.is_hidden) compiler.name = compiler.path;
  compiler.arguments = std::move(words);
  compiler.is_known = is_gcc_driver(compiler.path);
  return compiler;
}

}  // namespace jitc::cli
