#include "client/graph/c_text/lexer.h"

#include <array>
#include <cstring>

namespace jitc::graph::c {
namespace {

enum Class : std::uint8_t { kBad, kBlank, kLetter, kDigit, kPoint, kQuote, kHash, kSign };

constexpr std::array<Class, 256> kClasses = [] {
  std::array<Class, 256> classes{};
  for (const char c : {' ', '\t', '\n', '\r', '\v', '\f'}) classes[static_cast<unsigned char>(c)] = kBlank;
  for (int c = 'a'; c <= 'z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  for (int c = 'A'; c <= 'Z'; ++c) classes[static_cast<std::size_t>(c)] = kLetter;
  classes['_'] = kLetter;
  for (int c = '0'; c <= '9'; ++c) classes[static_cast<std::size_t>(c)] = kDigit;
  classes['.'] = kPoint;
  classes['"'] = classes['\''] = kQuote;
  classes['#'] = kHash;
  for (const char c : std::string_view("+-*/<>=!&|^~%?:;,(){}[]")) classes[static_cast<unsigned char>(c)] = kSign;
  return classes;
}();

Class class_of(char c) { return kClasses[static_cast<unsigned char>(c)]; }
bool continues_name(char c) { return class_of(c) == kLetter || class_of(c) == kDigit; }

std::uint64_t word_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 32);
}

}  // namespace

std::uint64_t hash_of(std::string_view identifier) {
  std::uint64_t hash = identifier.size();
  const char* at = identifier.data();
  std::size_t left = identifier.size();
  for (; left >= 8; left -= 8, at += 8) hash = mix(hash, word_at(at));
  std::uint64_t last = 0;
  if (left > 0) std::memcpy(&last, at, left);
  return mix(hash, last);
}

bool Lexer::begins_line(const char* at) const {
  while (at > begin_ && at[-1] != '\n') {
    --at;
    if (class_of(*at) != kBlank) return false;
  }
  return true;
}

// Does the line that ends here go on in the next one? Compilers let blanks follow the backslash.
bool Lexer::is_continued(const char* line_end) const {
  while (line_end > begin_ && line_end[-1] != '\n' && class_of(line_end[-1]) == kBlank) --line_end;
  return line_end > begin_ && line_end[-1] == '\\';
}

// The end of the line, and of those that continue it.
const char* Lexer::end_of_lines(const char* at) const {
  for (;; ++at) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end_ - at)));
    if (at == nullptr) return end_;
    if (!is_continued(at)) return at;
  }
}

// Behind the comment that begins here; where its end is not certain, nothing.
const char* Lexer::end_of_comment(const char* at) const {
  const std::string_view rest(at + 2, static_cast<std::size_t>(end_ - at) - 2);
  const std::size_t close = rest.find("*/");
  // A line that ends between the two characters would end the comment earlier.
  if (close == std::string_view::npos || rest.substr(0, close).find("*\\") != std::string_view::npos) return nullptr;
  return at + close + 4;
}

void Lexer::skip_blank() {
  for (;;) {
    while (at_ < end_ && class_of(*at_) == kBlank) ++at_;
    if (peek() != '/') return;
    if (peek(1) == '/') {
      at_ = end_of_lines(at_);
    } else if (peek(1) == '*') {
      const char* const close = end_of_comment(at_);
      if (close == nullptr) return;  // comes as kOther
      at_ = close;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blank();
  if (at_ == end_) return take(Token::kEnd, 0, 0);
  switch (class_of(*at_)) {
    case kLetter:
      return identifier();
    case kDigit:
      return number();
    case kPoint:
      return class_of(peek(1)) == kDigit ? number() : take(Token::kOther, 1, '.');
    case kSign:
      return punctuator();
    case kQuote:
      return quoted();
    case kHash:
      return begins_line(at_) ? directive() : take(Token::kOther, 1, '#');
    default:
      return take(Token::kOther, 1, *at_);
  }
}

Token Lexer::take(Token::Kind kind, std::size_t size, char symbol) {
  Token token;
  token.kind = kind;
  token.symbol = symbol;
  token.text = {at_, size};
  at_ += size;
  return token;
}

Token Lexer::identifier() {
  const char* end = at_ + 1;
  while (end < end_ && continues_name(*end)) ++end;
  const auto size = static_cast<std::size_t>(end - at_);
  const bool is_word = size < 8 && end_ - at_ >= 8;
  const std::uint64_t word = is_word ? word_at(at_) : 0;
  Token token = take(Token::kIdentifier, size, 0);
  if (is_word) {
    token.hash = mix(size, word & ((std::uint64_t{1} << (8 * size)) - 1));
  } else {
    token.hash = hash_of(token.text);
  }
  return token;
}

Token Lexer::number() {
  const char* end = at_ + 1;
  for (; end < end_; ++end) {
    if (continues_name(*end) || *end == '.') continue;
    const char before = static_cast<char>(end[-1] | 0x20);
    const bool is_hexadecimal = end - at_ > 2 && (at_[1] | 0x20) == 'x';
    if ((*end == '+' || *end == '-') && (before == 'p' || (before == 'e' && !is_hexadecimal))) continue;
    break;
  }
  return take(Token::kNumber, static_cast<std::size_t>(end - at_), 0);
}

// A comment that begins on the line may go on behind it.
Token Lexer::directive() {
  const char* line_end = end_of_lines(at_);
  const char* end = at_;
  while (end < line_end) {
    const std::string_view next(end, end + 1 < end_ ? 2 : 1);
    if (class_of(*end) == kQuote) {
      end = end_of_quoted(end);
    } else if (next == "//") {
      end = line_end;
    } else if (next == "/*") {
      const char* const close = end_of_comment(end);
      end = close == nullptr ? end_ : close;
      if (end > line_end) line_end = end_of_lines(end);
    } else {
      ++end;
    }
  }
  return take(Token::kDirective, static_cast<std::size_t>(end - at_), '#');
}

// Behind a string or character, or at the end of its line.
const char* Lexer::end_of_quoted(const char* at) const {
  const char quote = *at;
  for (++at; at < end_ && *at != quote; ++at) {
    if (*at == '\n' && !is_continued(at)) return at;
    if (*at == '\\' && at + 1 < end_ && class_of(at[1]) != kBlank) ++at;
  }
  return at < end_ ? at + 1 : end_;
}

Token Lexer::quoted() { return take(Token::kOther, static_cast<std::size_t>(end_of_quoted(at_) - at_), *at_); }

Token Lexer::punctuator() {
  const char first = *at_;
  const char second = peek(1);
  switch (first) {
    case '+':
    case '-':
      if (second == '=') return take(Token::kAssignOperator, 2, first);
      if (second == first || second == '>') return take(Token::kOther, 2, first);
      break;
    case '*':
    case '/':
      if (second == '=') return take(Token::kAssignOperator, 2, first);
      if (first == '/' && second == '*') return take(Token::kOther, static_cast<std::size_t>(end_ - at_), '/');
      break;
    case '<':
    case '>':
      if (second == '=') return take(first == '<' ? Token::kLessEqual : Token::kGreaterEqual, 2, 0);
      if (second == first || second == ':' || second == '%') return take(Token::kOther, 2, first);
      break;
    case '=':
      if (second == '=') return take(Token::kEqual, 2, 0);
      break;
    case '!':
      if (second == '=') return take(Token::kNotEqual, 2, 0);
      break;
    case '&':
    case '|':
      if (second == first) return take(first == '&' ? Token::kAnd : Token::kOr, 2, 0);
      return take(Token::kOther, 1, first);
    case '^':
    case '~':
    case '%':
      return take(Token::kOther, 1, first);
    default:
      break;
  }
  return take(Token::kPunctuator, 1, first);
}

bool Lexer::skip_block() {
  for (std::size_t depth = 1;;) {
    const Token token = next();
    if (token.kind == Token::kEnd) return false;
    if (token.is('{')) ++depth;
    if (token.is('}') && --depth == 0) return true;
  }
}

}  // namespace jitc::graph::c
