#include "daemon/service/command_compilers.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>

#include "daemon/service/compiler_files.h"

namespace jitc::service {
namespace {

constexpr auto kHelpers = std::to_array<const char*>({"cc1", "cc1plus", "as", "ld", "collect2", "lto1", "lto-wrapper"});
constexpr auto kParts = std::to_array<const char*>({"specs", "libgcc.a", "liblto_plugin.so"});
constexpr std::size_t kMostKnown = 100;

// The driver as its caller's environment has it, which says where its programs are.
std::vector<std::string> call_of(const common::Command& command) {
  std::vector<std::string> words = {"/usr/bin/env", "-i", "LC_ALL=C"};
  const auto variables = common::driver_variables(command.environment);
  words.insert(words.end(), variables.begin(), variables.end());
  words.push_back(command.compiler);
  return words;
}

std::string path_of(const std::vector<std::string>& call) {
  for (const std::string& word : call)
    if (word.starts_with("PATH=")) return word.substr(5);
  return kCompilersPath;
}

// A driver that does not know where these are (or was not heard out) says nothing of what it would run.
bool is_whole(const std::vector<std::string>& files) {
  const auto has = [&files](std::string_view name) {
    return std::ranges::any_of(files, [name](const std::string& file) { return file.ends_with(name); });
  };
  return (has("/cc1") || has("/cc1plus")) && has("/as") && has("/ld") && has("/collect2");
}

common::Digest fingerprint(const std::vector<std::string>& files, const std::string& directories) {
  common::Hasher hasher("jitc command compiler seen 1");
  // One that was installed since, in a directory that is searched earlier.
  for (const char* name : {"as", "ld"}) hasher.text("found", find_program(name, directories));
  for (const auto& file : files) {
    struct stat status{};
    hasher.number("there", stat(file.c_str(), &status) == 0 ? 1 : 0);
    add_stat(hasher, file, status, true);
  }
  return hasher.finish();
}

}  // namespace

common::Result<std::string> CommandCompilers::identity(const common::Command& command) {
  const auto call = call_of(command);
  const std::string directories = path_of(call);
  const std::lock_guard lock(mutex_);
  if (known_.size() > kMostKnown) known_.clear();
  Known& known = known_[call];
  if (!known.identity.empty() && fingerprint(known.files, directories) == known.seen) return known.identity;
  known.identity.clear();
  known.files = files_of_compiler(call, directories, kHelpers, kParts);
  if (!is_whole(known.files))
    return common::fail(common::ErrorKind::kRefused, "the programs that this compiler runs are not all known",
                        command.compiler);
  // Before the contents: a change in between shows at the next look.
  known.seen = fingerprint(known.files, directories);
  common::Hasher hasher("jitc command compiler 1");
  for (const auto& file : known.files) {
    if (!add_content(hasher, std::filesystem::path(file).filename().string(), file))
      return common::fail(common::ErrorKind::kRefused, "this part of the compiler cannot be read", file);
  }
  return known.identity = hasher.finish().hex();
}

bool CommandCompilers::is_current(const common::Command& command, const std::string& identity) {
  const auto is_as_seen = [](const common::CommandInput& input) {
    return common::file_state(input.path) == input.seen;
  };
  if (!std::ranges::all_of(command.inputs, is_as_seen)) return false;
  const auto now = this->identity(command);
  return now && *now == identity;
}

}  // namespace jitc::service
