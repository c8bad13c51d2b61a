// The compilers that `jitc cc` runs itself.
#pragma once

#include <string>
#include <vector>

#include "client/cli/cc_compiler.h"
#include "common/error.h"

namespace jitc::cli {

// Becomes the compiler, with everything that this process has. Returns only when that cannot be: then it has been said,
// and this is the exit code.
int become_compiler(const CcCompiler& compiler);
// Runs it with this process's directory, environment and streams, and ends as it ends: by its signal, or with the exit
// code that is returned.
int run_compiler(const CcCompiler& compiler);

// A short run that is listened to, without input.
struct CcHeard {
  int exit_code = -1;  // -1: a signal
  std::string out, err;
  std::string dependencies;  // what was written to kDependencyFile
};
inline constexpr const char* kDependencyFile = "/dev/fd/3";
common::Result<CcHeard> hear_compiler(const CcCompiler& compiler, const std::vector<std::string>& arguments);

}  // namespace jitc::cli
