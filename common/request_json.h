// A request as a JSON object, as capsules and plans have it, and what it takes to read such objects carefully. For the
// .cc files of this folder.
#pragma once

#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/request.h"

namespace jitc::common {

inline auto writer(nlohmann::ordered_json& object) {
  return [&object](const char* name, const auto& value) { object[name] = value; };
}

// What is absent keeps its default; what is there and of another type is remembered as wrong.
class Members {
 public:
  Members(const nlohmann::json& object, std::string& wrong) : object_(object), wrong_(wrong) {}

  template <class T>
  void operator()(const char* name, T& value) const {
    const auto it = object_.find(name);
    if (it != object_.end() && !take(*it, value) && wrong_.empty()) wrong_ = name;
  }

 private:
  static bool take(const nlohmann::json& item, std::string& value) {
    if (item.is_string()) value = item.get<std::string>();
    return item.is_string();
  }
  static bool take(const nlohmann::json& item, bool& value) {
    if (item.is_boolean()) value = item.get<bool>();
    return item.is_boolean();
  }
  static bool take(const nlohmann::json& item, double& value) {
    if (item.is_number()) value = item.get<double>();
    return item.is_number();
  }
  template <std::integral Number>
  static bool take(const nlohmann::json& item, Number& value) {
    if (!item.is_number_integer() || !std::in_range<Number>(item.get<std::int64_t>())) return false;
    value = static_cast<Number>(item.get<std::int64_t>());
    return true;
  }
  static bool take(const nlohmann::json& item, std::vector<std::string>& list) {
    if (!item.is_array()) return false;
    for (const auto& element : item)
      if (!take(element, list.emplace_back())) return false;
    return true;
  }

  const nlohmann::json& object_;
  std::string& wrong_;
};

// name, origin, code, flags, compiler, abi_tag, share, cse, emitter_version, isa_wish, isa_level, exact_flags,
// headers [{name, text}]
nlohmann::ordered_json request_to_json(const Request& request);
// `wrong` becomes the first member that is of another type.
Request request_from_json(const nlohmann::json& object, std::string& wrong);

}  // namespace jitc::common
