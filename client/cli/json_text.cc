#include "client/cli/json_text.h"

#include <nlohmann/json.hpp>

namespace jitc::cli {

std::string one_line(const nlohmann::json& object) {
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string one_line(const nlohmann::ordered_json& object) {
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace jitc::cli
