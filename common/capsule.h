// The capsule of a compile that failed: one file with what it takes to compile the same again anywhere, and what came
// of it. docs/formats.md has its members.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/error.h"
#include "common/request.h"

namespace jitc::common {

inline constexpr std::uint32_t kCapsuleVersion = 1;
inline constexpr std::uint64_t kLargestCapsule = std::uint64_t{256} << 20;

struct Capsule {
  std::string created;  // ISO 8601, UTC
  std::string jitc;     // version of the daemon
  std::string host;
  Request request;
  std::string key, request_digest;  // 64 hex digits each
  CompilerIdentity compiler;
  Target target;
  std::vector<std::string> command;
  std::vector<std::string> environment;  // what of the daemon's could matter: NAME=value
  std::uint64_t memory_bytes = 0;        // limit of the last try
  std::uint32_t cpu_seconds = 0;         // limit
  std::uint32_t compilers = 0;           // that might run at once
  std::uint64_t budget_bytes = 0;        // of all of them together
  std::uint64_t predicted_bytes = 0;
  std::uint64_t peak_bytes = 0;
  double seconds = 0;
  std::uint32_t attempts = 0;
  int exit_status = 0, signal = 0;  // how a process of it ended; 0: not so
  Error error;
};

std::string to_json(const Capsule& capsule);
// kUsage: not a capsule, or broken, with the member's name; kVersionSkew: of a later version. `path` is for errors.
Result<Capsule> capsule_from_json(std::string_view text, const std::string& path);
// Of a regular file of at most kLargestCapsule bytes.
Result<Capsule> read_capsule(const std::string& path);

}  // namespace jitc::common
