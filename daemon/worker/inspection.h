// Looks at the one parse: which functions the source exports, how much there is of it, and whether it contains what
// must not be compiled here (code that runs when a module is loaded, assembler, dates).
#pragma once

#include <clang/AST/ASTConsumer.h>
#include <clang/Frontend/CompilerInstance.h>

#include <memory>

#include "daemon/worker/job.h"

namespace jitc::worker {

struct Findings {
  google::protobuf::RepeatedPtrField<v1::Function> functions;
  v1::ParseCounts counts;
};

// Refuses through the compiler's diagnostics; so the code generator behind it makes nothing. `findings` must outlive
// it.
std::unique_ptr<clang::ASTConsumer> make_inspector(clang::CompilerInstance& compiler, Findings& findings);
// Refuses the macros that would bring the time into a result. Call when the preprocessor exists.
void watch_preprocessor(clang::CompilerInstance& compiler);

}  // namespace jitc::worker
