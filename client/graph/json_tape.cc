#include "client/graph/json_tape.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "client/graph/shown.h"

namespace jitc::graph {

// What the parser calls, token by token; `false` ends the parse.
class JsonTapeWriter {
 public:
  using Json = nlohmann::json;
  explicit JsonTapeWriter(JsonTape& tape) : tape_(tape) {}

  const std::string& fault() const { return fault_; }
  const std::string& place() const { return place_; }  // of the fault

  // NOLINTBEGIN(readability-identifier-naming): the parser's names
  bool null() { return add({.type = Type::kNull}); }
  bool boolean(bool value) { return add({.type = Type::kTruth, .value = value ? 1U : 0U}); }
  bool number_integer(std::int64_t value) { return add(number_token(static_cast<double>(value))); }
  bool number_unsigned(std::uint64_t value) {
    if (value > std::numeric_limits<std::uint32_t>::max()) return add(number_token(static_cast<double>(value)));
    return add({.type = Type::kIndex, .value = value});
  }
  bool number_float(double value, const std::string&) { return add(number_token(value)); }
  bool string(const std::string& text) {
    if (text.size() > std::numeric_limits<std::uint32_t>::max()) return refuse("a string longer than 4 GiB");
    const std::uint64_t place = tape_.texts_.size();
    tape_.texts_ += text;
    return add({.type = Type::kText, .size = static_cast<std::uint32_t>(text.size()), .value = place});
  }
  bool key(const std::string& text) { return string(text); }
  bool binary(const Json::binary_t&) { return refuse("binary data"); }
  bool start_object(std::size_t) { return open(Type::kObject); }
  bool start_array(std::size_t) { return open(Type::kArray); }
  bool end_object() {
    if (const auto twice = key_given_twice()) {
      if (open_.size() > 1) place_ = path();
      return refuse("the key '" + shown(*twice) + "' is given twice");
    }
    return close();
  }
  bool end_array() { return close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 7: ...": the text after the bracket.
    const std::string_view text = error.what();
    const auto bracket = text.find("] ");
    return refuse(text.substr(bracket == std::string_view::npos ? 0 : bracket + 2));
  }
  // NOLINTEND(readability-identifier-naming)

 private:
  using Type = JsonTape::Type;
  using Token = JsonTape::Token;

  static Token number_token(double value) {
    return {.type = Type::kNumber, .value = std::bit_cast<std::uint64_t>(value)};
  }
  bool add(const Token& token) {
    if (!open_.empty()) ++tape_.tokens_[open_.back()].size;
    tape_.tokens_.push_back(token);
    return true;
  }
  bool open(Type type) {
    if (open_.size() == JsonTape::kDeepest)
      return refuse("values are nested deeper than " + std::to_string(JsonTape::kDeepest));
    add({.type = type});
    open_.push_back(tape_.tokens_.size() - 1);
    return true;
  }
  bool close() {
    tape_.tokens_[open_.back()].value = tape_.tokens_.size();
    open_.pop_back();
    return true;
  }
  // In the innermost object, whose values are all there.
  std::optional<std::string_view> key_given_twice() {
    const std::size_t end = tape_.tokens_.size();
    keys_.clear();
    for (std::size_t at = open_.back() + 1; at < end; at = tape_.after(tape_.after(at)))
      keys_.push_back(tape_.text(tape_.tokens_[at]));
    std::ranges::sort(keys_);
    const auto twice = std::ranges::adjacent_find(keys_);
    return twice == keys_.end() ? std::nullopt : std::optional(*twice);
  }
  // "nodes[7]", of the innermost object.
  std::string path() const {
    std::string path;
    for (std::size_t i = 1; i < open_.size(); ++i) {
      const Token& parent = tape_.tokens_[open_[i - 1]];
      if (parent.type == Type::kArray) {
        path += "[" + std::to_string(parent.size - 1) + "]";
      } else {
        path.append(path.empty() ? "" : ".").append(shown(tape_.text(tape_.tokens_[open_[i] - 1])));
      }
    }
    return path;
  }
  bool refuse(std::string_view fault) {
    fault_ = fault;
    return false;
  }

  JsonTape& tape_;
  std::vector<std::size_t> open_;
  std::vector<std::string_view> keys_;
  std::string fault_;
  std::string place_ = "JSON";
};

common::Result<JsonTape> JsonTape::parse(std::string_view text) {
  JsonTape tape;
  JsonTapeWriter writer(tape);
  if (nlohmann::json::sax_parse(text, &writer)) return tape;
  return common::fail(common::ErrorKind::kInvalidSource, writer.fault(), writer.place());
}

std::string_view JsonTape::text(const Token& token) const {
  return std::string_view(texts_).substr(token.value, token.size);
}

std::size_t JsonTape::after(std::size_t place) const {
  const Token& token = tokens_[place];
  const bool is_list = token.type == Type::kArray || token.type == Type::kObject;
  return is_list ? static_cast<std::size_t>(token.value) : place + 1;
}

std::optional<std::string_view> JsonValue::text() const {
  const auto& token = tape_->tokens_[place_];
  if (token.type != JsonTape::Type::kText) return std::nullopt;
  return tape_->text(token);
}

std::optional<std::uint32_t> JsonValue::index() const {
  const auto& token = tape_->tokens_[place_];
  if (token.type != JsonTape::Type::kIndex) return std::nullopt;
  return static_cast<std::uint32_t>(token.value);
}

std::optional<double> JsonValue::number() const {
  const auto& token = tape_->tokens_[place_];
  if (token.type == JsonTape::Type::kIndex) return static_cast<double>(token.value);
  if (token.type != JsonTape::Type::kNumber) return std::nullopt;
  return std::bit_cast<double>(token.value);
}

std::optional<bool> JsonValue::truth() const {
  const auto& token = tape_->tokens_[place_];
  if (token.type != JsonTape::Type::kTruth) return std::nullopt;
  return token.value != 0;
}

bool JsonValue::is_array() const { return tape_->tokens_[place_].type == JsonTape::Type::kArray; }
bool JsonValue::is_object() const { return tape_->tokens_[place_].type == JsonTape::Type::kObject; }

std::size_t JsonValue::size() const { return is_array() || is_object() ? tape_->tokens_[place_].size : 0; }

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  if (!is_object()) return std::nullopt;
  for (auto at = begin(); at != end(); ++at) {
    const bool is_it = (*at).text() == key;
    ++at;
    if (is_it) return *at;
  }
  return std::nullopt;
}

JsonValue::Iterator JsonValue::begin() const { return {*tape_, place_ + 1}; }

JsonValue::Iterator JsonValue::end() const {
  return {*tape_, size() == 0 ? place_ + 1 : static_cast<std::size_t>(tape_->tokens_[place_].value)};
}

JsonValue::Iterator& JsonValue::Iterator::operator++() {
  place_ = tape_->after(place_);
  return *this;
}

}  // namespace jitc::graph
