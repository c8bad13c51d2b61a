// JSON as the command prints it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace jitc::cli {

// In one line, without its end. Names need not be UTF-8: what is not is replaced.
std::string one_line(const nlohmann::json& object);
std::string one_line(const nlohmann::ordered_json& object);

}  // namespace jitc::cli
