// What a command's output is decided by: the preprocessed text and the files it is made of, or what a link reads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "client/cli/cc_arguments.h"
#include "client/cli/cc_compiler.h"
#include "common/command.h"

namespace jitc::cli {

struct CcInputs {
  common::Command command;
  std::string dependencies;  // the text of the plan's dependency file
};
struct CcOptions {
  bool relaxed_debug = true;  // debug information may name another directory
  std::vector<std::string> environment;
  std::string directory;
};
// Runs the preprocessor, for a link the driver that says what it would link. Nothing when not everything that decides
// the output could be found: then the compiler runs as it is told, and nothing is kept.
std::optional<CcInputs> inputs_of(const CcCompiler& compiler, const CcPlan& plan, const CcOptions& options);

}  // namespace jitc::cli
