#include <algorithm>

#include "client/graph/c_text/function.h"

namespace jitc::graph::c {
namespace {

// Attributes that change neither what a function computes nor how.
constexpr std::string_view kHarmlessAttributes[] = {
    "visibility", "used", "unused", "noinline", "always_inline", "hot", "cold", "const", "pure", "nothrow", "leaf",
};

constexpr std::size_t kMostParameters = 1000;

class SignatureReader {
 public:
  SignatureReader(std::span<const Token> tokens, const SymbolTable& names, std::string_view text)
      : tokens_(tokens), names_(names), text_(text) {}

  std::optional<Signature> read();

 private:
  bool whole();
  bool skip_attribute();
  bool specifiers();
  bool parameters();
  bool parameter(std::size_t end);
  bool at_end() const { return at_ >= tokens_.size(); }
  const Token& token() const { return tokens_[at_]; }
  std::optional<Keyword> keyword(const Token& token) const;
  bool refuse(std::string reason);

  std::span<const Token> tokens_;
  const SymbolTable& names_;
  std::string_view text_;
  std::size_t at_ = 0;
  Signature signature_;
};

std::optional<Keyword> SignatureReader::keyword(const Token& token) const {
  if (token.kind != Token::kIdentifier) return std::nullopt;
  const Symbol symbol = names_.find(token);
  return symbol.kind == Symbol::kKeyword ? std::optional(static_cast<Keyword>(symbol.index)) : std::nullopt;
}

bool SignatureReader::refuse(std::string reason) {
  const Token& place = tokens_[std::min(at_, tokens_.size() - 1)];
  signature_.refusal = {static_cast<std::size_t>(place.text.data() - text_.data()), std::move(reason)};
  return false;
}

bool SignatureReader::skip_attribute() {
  int depth = 0;
  for (++at_; !at_end(); ++at_) {
    if (token().is('(')) ++depth;
    if (token().is(')') && --depth == 0) {
      ++at_;
      return true;
    }
    if (token().kind != Token::kIdentifier || depth != 2) continue;
    std::string_view name = token().text;
    if (name.starts_with("__") && name.ends_with("__") && name.size() > 4) name = name.substr(2, name.size() - 4);
    if (std::ranges::find(kHarmlessAttributes, name) == std::end(kHarmlessAttributes))
      return refuse("an attribute that may change how the function is computed");
  }
  return refuse("an attribute without its end");
}

// Up to the function's name.
bool SignatureReader::specifiers() {
  TypeWords words;
  for (; !at_end() && token().kind == Token::kIdentifier; ++at_) {
    const auto word = keyword(token());
    if (word == Keyword::kStatic || word == Keyword::kInline) {
      signature_.is_local = true;
    } else if (word == Keyword::kAttribute) {
      if (!skip_attribute()) return false;
      --at_;
    } else if (word != Keyword::kExtern && !words.take(names_.find(token()))) {
      break;
    }
  }
  signature_.result = words.type();
  if (signature_.result == Type::kOther) return refuse("a function whose type is neither void nor double, int or long");
  if (at_end() || token().kind != Token::kIdentifier || keyword(token()))
    return refuse("a function's name was expected");
  signature_.name = token();
  ++at_;
  return !at_end() && token().is('(') ? true : refuse("'(' was expected");
}

bool SignatureReader::parameters() {
  ++at_;
  if (at_ + 1 < tokens_.size() && keyword(token()) == Keyword::kVoid && tokens_[at_ + 1].is(')')) {
    at_ += 2;
    return true;
  }
  while (!at_end()) {
    std::size_t end = at_;
    for (int depth = 0; end < tokens_.size(); ++end) {
      if (depth == 0 && (tokens_[end].is(',') || tokens_[end].is(')'))) break;
      if (tokens_[end].is('(') || tokens_[end].is('[')) ++depth;
      if (tokens_[end].is(')') || tokens_[end].is(']')) --depth;
    }
    if (end == tokens_.size() || !parameter(end)) return end == tokens_.size() ? refuse("a ')' is missing") : false;
    at_ = end + 1;
    if (tokens_[end].is(')')) return true;
  }
  return refuse("a ')' is missing");
}

// One parameter. A type that is not understood is refused where the parameter is used.
bool SignatureReader::parameter(std::size_t end) {
  if (signature_.parameters.size() == kMostParameters) return refuse("more than 1000 parameters");
  Parameter parameter;
  TypeWords words;
  std::uint32_t pointers = 0;
  bool is_unknown = false;
  for (; at_ < end; ++at_) {
    const bool is_name = token().kind == Token::kIdentifier;
    const auto word = keyword(token());
    if (word == Keyword::kRestrict) {
      parameter.is_restrict = true;
    } else if ((word == Keyword::kConst && pointers > 0) || (is_name && words.take(names_.find(token())))) {
      continue;  // a const pointer says nothing of what it points to
    } else if (token().is('*')) {
      ++pointers;
    } else if (token().is('[')) {
      ++pointers;
      for (; at_ < end && !token().is(']'); ++at_)
        parameter.is_restrict = parameter.is_restrict || keyword(token()) == Keyword::kRestrict;
    } else if (is_name && !word && !words.has_any() && !is_unknown) {
      is_unknown = true;  // a type's name
    } else if (is_name && !word && parameter.name.text.empty()) {
      parameter.name = token();
    } else {
      return refuse("a parameter of a kind that is not understood");
    }
  }
  const bool is_plain = !is_unknown && pointers <= 1 && words.type() != Type::kVoid && words.type() != Type::kBool;
  parameter.type = is_plain ? words.type() : Type::kOther;
  parameter.is_array = pointers > 0;
  parameter.is_const = words.is_const();
  const auto has_name = [&](const Parameter& other) { return other.name.text == parameter.name.text; };
  if (!parameter.name.text.empty() && std::ranges::any_of(signature_.parameters, has_name))
    return refuse("two parameters of one name");
  signature_.parameters.push_back(parameter);
  return true;
}

bool SignatureReader::whole() {
  const auto is_macro = [this](const Token& candidate) {
    return candidate.kind == Token::kIdentifier && names_.find(candidate).kind == Symbol::kMacro;
  };
  if (std::ranges::any_of(tokens_, is_macro)) return refuse("a macro in the function's head");
  if (!specifiers() || !parameters()) return false;
  while (!at_end()) {
    if (keyword(token()) != Keyword::kAttribute) return refuse("what stands between ')' and '{' is not understood");
    if (!skip_attribute()) return false;
  }
  return true;
}

std::optional<Signature> SignatureReader::read() {
  // Structures and initialisers do not end with a parenthesis.
  if (tokens_.empty() || !tokens_.back().is(')')) return std::nullopt;
  if (std::ranges::any_of(tokens_, [](const Token& candidate) { return candidate.is('='); })) return std::nullopt;
  if (!whole() && signature_.name.text.empty()) {
    for (std::size_t i = 0; i + 1 < tokens_.size() && signature_.name.text.empty(); ++i)
      if (tokens_[i].kind == Token::kIdentifier && !keyword(tokens_[i]) && tokens_[i + 1].is('('))
        signature_.name = tokens_[i];
  }
  return std::move(signature_);
}

}  // namespace

std::optional<Signature> read_signature(std::span<const Token> tokens, const SymbolTable& names,
                                        std::string_view text) {
  return SignatureReader(tokens, names, text).read();
}

}  // namespace jitc::graph::c
