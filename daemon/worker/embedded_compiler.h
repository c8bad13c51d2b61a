// The embedded Clang and lld: one source to one shared object, inside this process.
//
// One parse serves the inspection and the code generator. Nothing is read but the file view, nothing is written but
// memory files, and the result depends on source, headers, flags and level only.
#pragma once

#include <string>
#include <vector>

#include "daemon/worker/job.h"

namespace jitc::worker {

// Once per process, before the first compile.
void initialise_compiler();
// What enters the artifact key: versions and a digest of the builtin headers.
std::string embedded_identity();

// What compile_embedded does, as words that people could type.
std::vector<std::string> embedded_command(const v1::WorkerCommand::Start& start);

struct CompileOptions {
  // False: memory is given back, because another compile follows in this process.
  bool last = true;
};
// Always answers: outcome, diagnostics, functions, counts; the shared object when the outcome is DONE.
Outcome compile_embedded(const Job& job, CompileOptions options);

// Only parses and inspects the job's source, which is what another compiler's preprocessor wrote, under the rules of
// `compile_embedded`; DONE means nothing was found.
Outcome inspect_preprocessed(const Job& job);

}  // namespace jitc::worker
