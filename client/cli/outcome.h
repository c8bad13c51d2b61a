// What became of one source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"

namespace jitc::cli {

struct Outcome {
  std::string name;  // as given on the command line; <stdin> for -
  std::optional<common::Error> error;
  std::string key;   // 64 hex digits
  std::string path;  // of the artifact
  bool hit = false;
  bool merged = false;
  double seconds = 0;              // that its compile took, whenever that was
  std::uint64_t peak_bytes = 0;    // that its compile took
  bool degraded = false;           // not compiled with the flags asked for
  std::vector<std::string> rungs;  // what the daemon tried, in order
  std::vector<std::string> warnings;
};

// One JSON object in one line: name, key, path, hit, merged, seconds, peak_bytes, warnings, and rungs and degraded
// where something was tried; or name and error.
std::string to_json(const Outcome& outcome);

}  // namespace jitc::cli
