// A compiler's command line as `jitc cc` hands it to the daemon: what is run, where, and what decides its output.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/flags.h"

namespace jitc::common {

// A file that decides the output, as it was seen.
struct CommandInput {
  std::string path;  // absolute
  std::string seen;  // file_state()
  bool operator==(const CommandInput&) const = default;
};
// Device, inode, size and times of what the path stands for, as text: two equal ones are the same contents unless
// somebody takes pains. "absent" for what is not there.
std::string file_state(const std::string& path);
std::string file_state(const struct stat& status);

struct Command {
  std::string compiler;           // the driver's path, absolute
  std::vector<std::string> argv;  // argv[0] as the caller spells it; without -o
  std::vector<std::string> environment;
  std::string directory;
  bool by_caller = false;  // admission only: the caller runs it itself
  Digest digest;           // over what decides the output, beside compiler and CPU
  bool for_this_cpu = false;
  bool with_messages = false;  // what it prints is decided by the digest too
  std::vector<CommandInput> inputs;
  SourceScan scan;  // of the preprocessed text, or its size alone
};

// What a compiler's driver is told by variables, from `environment` (NAME=value): where it looks for its programs.
std::vector<std::string> driver_variables(const std::vector<std::string>& environment);

// The artifact key of a command on this node; `compiler` is the identity of its driver, `cpu` that of the node's CPU.
Digest command_key(const Command& command, const std::string& compiler, const std::string& cpu);

}  // namespace jitc::common
