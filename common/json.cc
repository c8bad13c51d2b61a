#include "common/json.h"

namespace jitc::common {

nlohmann::json parse_json(std::string_view text) {
  using Json = nlohmann::json;
  bool is_too_deep = false;
  const auto goes_on = [&is_too_deep](int depth, Json::parse_event_t, const Json&) {
    is_too_deep = is_too_deep || depth > kDeepestJson;
    return !is_too_deep;
  };
  auto value = Json::parse(text, goes_on, /*allow_exceptions=*/false);
  return is_too_deep ? Json(Json::value_t::discarded) : value;
}

}  // namespace jitc::common
