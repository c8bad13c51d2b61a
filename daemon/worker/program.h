// A program that a compile child runs: a compiler's driver, which runs others.
#pragma once

#include <jitc/v1/worker.pb.h>

#include <cstdint>
#include <string>
#include <vector>

namespace jitc::worker {

// Of each process, beside those that the tree has as a whole.
struct ProcessLimits {
  std::uint64_t memory_bytes = 0;
  std::uint32_t cpu_seconds = 0;
};
ProcessLimits limits_of(const v1::WorkerCommand::Start& start);

struct Program {
  std::string path;
  std::vector<std::string> words, environment;
  ProcessLimits limits;
  int out, err;  // descriptors; it gets no others but standard input
};
struct ProgramEnd {
  int status = 0;      // as wait(2) gives it
  int exec_error = 0;  // not 0: it could not be started
};
// In this process's working directory; waits for its end.
ProgramEnd run_program(Program program);

// Ends what a program left behind and reaps it: this process is the reaper of the whole tree.
void end_leftovers();

}  // namespace jitc::worker
