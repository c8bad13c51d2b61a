// Another program, run to its end within a limit.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "common/error.h"

namespace jitc::cli {

struct Ended {
  int code = 0;  // 128 + the signal's number for one that a signal ended
  std::string out, err;
};

using Variables = std::vector<std::pair<std::string, std::string>>;

// argv[0] is looked for on the PATH. `variables` go before this process's own. kUnreachable: there is no such program;
// kTimedOut: it was killed, and what it started. With kHeeds also after an interrupt: kCancelled.
enum class Interrupts { kHeeds, kOutlasts };
common::Result<Ended> run_program(const std::vector<std::string>& argv, const Variables& variables,
                                  const std::string& input, double seconds, Interrupts interrupts = Interrupts::kHeeds);

// The first line of what it says of itself; empty: it cannot be run, or fails.
std::string first_line(const std::vector<std::string>& argv, double seconds);

// Where the PATH has it; empty: nowhere.
std::string on_path(const std::string& name);

}  // namespace jitc::cli
