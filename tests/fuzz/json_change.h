// Changes the structure of a JSON text where changes of its bytes would mostly make it none.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz.h"

namespace jitc::fuzz {

// What JSON texts are made of, and `own`.
inline std::vector<std::string> json_words(std::vector<std::string> own) {
  own.insert(own.end(), {"{", "}", "[", "]", "\"", ",", ":", "null", "true", "-1", "\\u0000", "\\ud800", "\xff"});
  return own;
}

inline nlohmann::json any_json(Mutator& mutator) {
  using nlohmann::json;
  switch (mutator.below(10)) {
    case 0:
      return nullptr;
    case 1:
      return json::object();
    case 2:
      return json::array({any_json(mutator)});
    case 3:
      return -static_cast<std::int64_t>(mutator.below(3));
    case 4:
      return ~std::uint64_t{0} >> mutator.below(64);
    case 5:
      return 1e300;
    case 6:
      return mutator.below(2) == 0;
    case 7:
      return json::object({{"name", any_json(mutator)}});
    default:
      return std::string(mutator.below(3), 'a');
  }
}

// One value somewhere in it becomes another one, or is taken out, or gets one more. A text that is no JSON stays.
inline void change_value(std::string& text, Mutator& mutator) {
  auto document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (document.is_discarded()) return;
  nlohmann::json* at = &document;
  while (at->is_structured() && !at->empty() && mutator.below(8) != 0) {
    const auto next = std::next(at->begin(), static_cast<std::ptrdiff_t>(mutator.below(at->size())));
    if (mutator.below(16) == 0) {
      at->erase(next);
      text = document.dump();
      return;
    }
    at = &*next;
  }
  if (at->is_array() && mutator.below(2) == 0) {
    at->push_back(any_json(mutator));
  } else {
    *at = any_json(mutator);
  }
  text = document.dump();
}

}  // namespace jitc::fuzz
