// Which compilers stand behind commands: identities of drivers that callers name, read once and again when a file of
// theirs changes. Thread-safe; reading asks the driver, which takes most of a second.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/command.h"
#include "common/error.h"

namespace jitc::service {

class CommandCompilers {
 public:
  // The content digest of what the command's driver runs in the command's environment. kRefused when not all of it can
  // be read.
  common::Result<std::string> identity(const common::Command& command);
  // Would this command's key and output be the same now? `identity` is what its key was made with.
  bool is_current(const common::Command& command, const std::string& identity);

 private:
  struct Known {
    std::vector<std::string> files;
    common::Digest seen;
    std::string identity;
  };
  std::mutex mutex_;                                 // held while one is read: who else asks for it would read it too
  std::map<std::vector<std::string>, Known> known_;  // by the driver's path and its variables
};

}  // namespace jitc::service
