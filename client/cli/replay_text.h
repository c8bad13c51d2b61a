// What became of a failed compile that was done again. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/capsule.h"
#include "common/error.h"
#include "common/identity.h"

namespace jitc::cli {

enum class Replayed { kCompiles, kUnchecked, kSameFailure, kOtherFailure, kNotRun };
// The same: of one kind, and of sources that do not compile with the same errors. kNotRun: what is missing here says
// nothing about the source (no daemon, no such compiler, interrupted). kUnchecked: it compiled there too, to a module
// that was wrong; a capsule does not have what it must compute.
Replayed compare(const common::Error& recorded, const std::optional<common::Error>& now);
// "it compiles here", "the same failure" ...
const char* words_of(Replayed replayed);
// The same as names, for JSON.
const char* name_of(Replayed replayed);

// One of what differs from the recorded compile.
struct Change {
  std::string what;
  std::string recorded, here;
};
// Versions and target; what the daemon here does not say is left out.
std::vector<Change> changes_since(const common::Capsule& capsule, const common::Identity& identity,
                                  const std::optional<common::ResolvedRequest>& resolved);

// What a daemon gives its compiles.
struct Surroundings {
  std::uint32_t cpu_seconds = 0, compilers = 0;
  std::uint64_t budget_bytes = 0;
  std::vector<std::string> environment;  // NAME=value
};
// Limits and variables. Those of the record are not applied to another compile.
std::vector<Change> changes_around(const common::Capsule& capsule, const Surroundings& here);

}  // namespace jitc::cli
