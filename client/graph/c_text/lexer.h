// C text as tokens, one at a time; comments and white space are skipped. What a pointwise function cannot need
// (strings, shifts, increments, line continuations) comes as kOther, which every caller refuses.
#pragma once

#include <cstdint>
#include <string_view>

namespace jitc::graph::c {

struct Token {
  enum Kind : std::uint8_t {
    kEnd,
    kIdentifier,
    kNumber,      // a preprocessing number: not yet known to be well formed
    kDirective,   // from # to the end of its (continued) line; only where a line begins
    kPunctuator,  // one character: `symbol`
    kLessEqual,
    kGreaterEqual,
    kEqual,
    kNotEqual,
    kAnd,
    kOr,
    kAssignOperator,  // += -= *= /=: `symbol` is the operator
    kOther,
  };
  Kind kind = kEnd;
  char symbol = 0;
  std::uint64_t hash = 0;  // of an identifier: hash_of(text)
  std::string_view text;

  bool is(char punctuator) const { return kind == kPunctuator && symbol == punctuator; }
  bool is(std::string_view identifier) const { return kind == kIdentifier && text == identifier; }
};

std::uint64_t hash_of(std::string_view identifier);

class Lexer {
 public:
  // The text must outlive the lexer and its tokens.
  explicit Lexer(std::string_view text) : begin_(text.data()), at_(begin_), end_(begin_ + text.size()) {}

  Token next();
  std::size_t position() const { return static_cast<std::size_t>(at_ - begin_); }
  char peek(std::size_t ahead = 0) const {  // NUL behind the end
    return ahead < static_cast<std::size_t>(end_ - at_) ? at_[ahead] : '\0';
  }
  std::string_view text() const { return {begin_, static_cast<std::size_t>(end_ - begin_)}; }
  void seek(std::size_t position) { at_ = begin_ + position; }
  // After a `{`: goes behind the `}` that closes it; false where there is none.
  bool skip_block();

 private:
  bool begins_line(const char* at) const;
  bool is_continued(const char* line_end) const;
  const char* end_of_lines(const char* at) const;
  const char* end_of_comment(const char* at) const;
  const char* end_of_quoted(const char* at) const;
  void skip_blank();
  Token directive();
  Token identifier();
  Token number();
  Token quoted();
  Token punctuator();
  Token take(Token::Kind kind, std::size_t size, char symbol);

  const char* begin_;
  const char* at_;
  const char* end_;
};

}  // namespace jitc::graph::c
