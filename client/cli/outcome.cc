#include "client/cli/outcome.h"

#include <nlohmann/json.hpp>

#include "client/cli/json_text.h"

namespace jitc::cli {

std::string to_json(const Outcome& outcome) {
  nlohmann::ordered_json object = {{"name", outcome.name}};
  if (outcome.error) {
    object["error"] = nlohmann::ordered_json::parse(common::to_json(*outcome.error));
  } else {
    object["key"] = outcome.key;
    object["path"] = outcome.path;
    object["hit"] = outcome.hit;
    object["merged"] = outcome.merged;
    object["seconds"] = outcome.seconds;
    object["peak_bytes"] = outcome.peak_bytes;
    object["warnings"] = outcome.warnings;
    if (!outcome.rungs.empty()) object["rungs"] = outcome.rungs;
    if (outcome.degraded) object["degraded"] = true;
  }
  // File names need not be UTF-8.
  return one_line(object);
}

}  // namespace jitc::cli
