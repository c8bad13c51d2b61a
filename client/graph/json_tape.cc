#include "client/graph/json_tape.h"

#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

namespace jitc::graph {

// What the parser calls, token by token; `false` ends the parse.
class JsonTapeWriter {
 public:
  using Json = nlohmann::json;
  explicit JsonTapeWriter(JsonTape& tape) : tape_(tape) {}

  const std::string& fault() const { return fault_; }

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
  bool end_object() { return close(); }
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
  bool refuse(std::string_view fault) {
    fault_ = fault;
    return false;
  }

  JsonTape& tape_;
  std::vector<std::size_t> open_;
  std::string fault_;
};

common::Result<JsonTape> JsonTape::parse(std::string_view text) {
  JsonTape tape;
  JsonTapeWriter writer(tape);
  if (nlohmann::json::sax_parse(text, &writer)) return tape;
  return common::fail(common::ErrorKind::kInvalidSource, writer.fault(), "JSON");
}

std::optional<std::string_view> JsonValue::text() const {
  const auto& token = tape_->tokens_[place_];
  if (token.type != JsonTape::Type::kText) return std::nullopt;
  return std::string_view(tape_->texts_).substr(token.value, token.size);
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
  const auto& token = tape_->tokens_[place_];
  const bool is_list = token.type == JsonTape::Type::kArray || token.type == JsonTape::Type::kObject;
  place_ = is_list ? static_cast<std::size_t>(token.value) : place_ + 1;
  return *this;
}

}  // namespace jitc::graph
