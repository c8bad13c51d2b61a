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
  double seconds = 0;            // that its compile took, whenever that was
  std::uint64_t peak_bytes = 0;  // that its compile took
  std::vector<std::string> warnings;
};

// One JSON object in one line: name, key, path, hit, merged, seconds, peak_bytes, warnings; or name and error.
std::string to_json(const Outcome& outcome);

}  // namespace jitc::cli
