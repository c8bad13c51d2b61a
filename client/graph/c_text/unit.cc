#include "client/graph/c_text/unit.h"

#include <algorithm>

#include "client/graph/emit.h"

namespace jitc::graph::c {
namespace {

// A helper is copied into every call: it must be small.
constexpr std::size_t kMostHelperNodes = 256;

constexpr std::string_view kBlanks = " \t\r\v\f";

// Standard headers that define no macro or type that a pointwise function could be changed by.
constexpr std::string_view kKnownHeaders[] = {
    "<assert.h>", "<errno.h>",  "<float.h>", "<limits.h>", "<math.h>",
    "<stddef.h>", "<stdint.h>", "<stdio.h>", "<stdlib.h>", "<string.h>",
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view first_word(std::string_view text) {
  const auto is_part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return text.substr(0, static_cast<std::size_t>(std::ranges::find_if_not(text, is_part) - text.begin()));
}

bool has_lone_return(std::string_view text) {
  for (std::size_t at = text.find('\r'); at != std::string_view::npos; at = text.find('\r', at + 1))
    if (at + 1 == text.size() || text[at + 1] != '\n') return true;
  return false;
}

// Of a token outside of functions: `#` in the middle of a line, `\`, and `%`, with which `%:` may begin.
bool may_hide_directive(const Token& token) {
  return token.kind == Token::kOther && (token.symbol == '#' || token.symbol == '\\' || token.symbol == '%');
}

// Of a head or declaration: a static function that is not said to be wanted whoever calls it.
bool is_droppable(std::span<const Token> tokens) {
  const auto has = [&](std::string_view word) {
    return std::ranges::any_of(tokens, [word](const Token& token) { return token.is(word); });
  };
  return has("static") && !has("used") && !has("__used__");
}

}  // namespace

Unit::Unit(std::string_view text) : text_(text), lexer_(text), reader_(text) { add_keywords(declarations_.names); }

SharedText Unit::share() {
  // Trigraphs hide backslashes and brackets.
  if (text_.find("?\?") != std::string_view::npos) block("trigraphs");
  if (has_lone_return(text_)) block("a carriage return inside of a line: compilers differ in whether it ends");
  // The guard must stand in front of it.
  if (text_.starts_with("\xEF\xBB\xBF")) block("a byte order mark");
  read();
  result_.text.append(text_.substr(copied_));
  if (copied_ > 0) drop_unused();
  if (copied_ > 0 && !is_guarded_) result_.text.insert(0, kContractionGuard);
  return std::move(result_);
}

std::size_t Unit::position_of(const Token& token) const {
  return static_cast<std::size_t>(token.text.data() - text_.data());
}

void Unit::block(std::string_view reason) {
  if (blocked_.empty()) blocked_ = reason;
}

// ---- file scope ---------------------------------------------------------------------------------------------------

void Unit::read() {
  for (std::size_t depth = 0;;) {
    const Token token = lexer_.next();
    switch (token.kind) {
      case Token::kEnd:
        return;
      case Token::kDirective:
        if (guard(token)) continue;
        directive(token.text);
        if (!tokens_.empty()) tokens_.push_back(token);  // inside of a declaration, which is not understood then
        continue;
      case Token::kOther:
        if (may_hide_directive(token)) block("a directive that is not understood");
        break;
      case Token::kIdentifier:
        if (token.text == "_Pragma" || token.text == "__pragma") block("a pragma");
        break;
      default:
        break;
    }
    if (token.is('{')) {
      const auto signature = read_signature(tokens_, declarations_.names, text_);
      if (signature) {
        function(*signature, lexer_.position());
        tokens_.clear();
        depth = 0;
        continue;
      }
      if (!tokens_.empty() && tokens_.back().kind == Token::kOther) block("an extern \"...\" block");
      skip_block();
    } else if (token.is(';') && depth == 0) {
      declaration();
      tokens_.clear();
      continue;
    }
    if (token.is('(')) ++depth;
    if (token.is(')') && depth > 0) --depth;
    tokens_.push_back(token);
  }
}

// Goes behind the `}` that closes an open block.
void Unit::skip_block() {
  for (std::size_t depth = 1; depth > 0;) {
    const Token token = lexer_.next();
    if (token.kind == Token::kEnd) return;
    if (token.kind == Token::kDirective) {
      directive(token.text);
      // Its braces may be those of either branch.
      if (conditionals_ > 0) block("conditional compilation inside of braces");
    }
    if (may_hide_directive(token)) block("a directive that is not understood");
    if (token.is('{')) ++depth;
    if (token.is('}')) --depth;
  }
}

// Goes behind the guard of printed texts, which takes no freedom away and gives none: the only pragma that is
// understood.
bool Unit::guard(const Token& token) {
  const std::size_t begin = position_of(token);
  if (!tokens_.empty() || !text_.substr(begin).starts_with(kContractionGuard)) return false;
  lexer_.seek(begin + kContractionGuard.size());
  // It acts on what follows; a function that was kept before has none. A directive before it may switch it off.
  is_guarded_ = is_guarded_ || (!has_directives_ && result_.functions.empty());
  return true;
}

void Unit::directive(std::string_view line) {
  const std::string_view rest = trimmed(line.substr(1));
  const std::string_view word = first_word(rest);
  const std::string_view behind = trimmed(rest.substr(word.size()));
  has_directives_ = has_directives_ || word != "include";
  if (word == "include") {
    include(behind);
  } else if (word == "define" || word == "undef") {
    define(behind);
  } else if (word == "if" || word == "ifdef" || word == "ifndef") {
    ++conditionals_;
  } else if (word == "endif") {
    if (conditionals_ > 0) --conditionals_;
  } else if (word == "pragma") {
    if (behind != "once") block("a pragma");
  } else if (word != "else" && word != "elif" && word != "error" && word != "warning" && word != "line" &&
             !(rest.empty() || (rest[0] >= '0' && rest[0] <= '9'))) {
    block("a directive that is not understood");
  }
}

void Unit::include(std::string_view header) {
  const std::size_t close = header.find('>');
  const std::string_view name = header.substr(0, close == std::string_view::npos ? close : close + 1);
  if (std::ranges::find(kKnownHeaders, name) == std::end(kKnownHeaders)) {
    block("a header whose macros and types are not known here: " + std::string(header.substr(0, 80)));
    return;
  }
  if (conditionals_ > 0) return;  // what it declares may be missing
  if (name == "<math.h>") add_math(declarations_.names);
  if (name == "<stdint.h>") add_integers(declarations_.names);
}

void Unit::define(std::string_view rest) {
  const std::string_view name = first_word(rest);
  if (name.empty()) return block("a directive that is not understood");
  underscores_ = std::max(underscores_, underscores_beside(name));
  declarations_.names.set(name_token(name), {Symbol::kMacro, Type::kOther, 0});
}

// typedef double real; anything else makes its names unknown.
void Unit::declaration() {
  if (type_definition()) return;
  note_prototype();
  for (const Token& token : tokens_) {
    if (token.kind != Token::kIdentifier) continue;
    if (token.text == "optimize" || token.text == "__optimize__" || token.text == "target" ||
        token.text == "__target__")
      block("an attribute that may change how a function is computed");
    const Symbol::Kind known = declarations_.names.find(token).kind;
    if (known != Symbol::kKeyword && known != Symbol::kType && known != Symbol::kMacro)
      declarations_.names.set(token, {Symbol::kUnknown, Type::kOther, 0});
  }
}

bool Unit::type_definition() {
  if (tokens_.size() < 3 || !tokens_.front().is("typedef") || conditionals_ > 0) return false;
  const Token& name = tokens_.back();
  if (name.kind != Token::kIdentifier || declarations_.names.find(name).kind != Symbol::kNone) return false;
  TypeWords words;
  for (const Token& token : std::span(tokens_).subspan(1, tokens_.size() - 2))
    if (token.kind != Token::kIdentifier || !words.take(declarations_.names.find(token))) return false;
  if (words.type() == Type::kOther || words.is_const()) return false;
  declarations_.names.set(name, {Symbol::kType, words.type(), 0});
  return true;
}

// ---- functions ----------------------------------------------------------------------------------------------------

std::size_t Unit::line_of(std::size_t position) {
  if (position > counted_) {
    const std::string_view passed = text_.substr(counted_, position - counted_);
    line_ += static_cast<std::size_t>(std::ranges::count(passed, '\n'));
    if (const std::size_t last = passed.rfind('\n'); last != std::string_view::npos) line_begin_ = counted_ + last + 1;
    counted_ = position;
  }
  return line_;
}

// line:column
std::string Unit::place(std::size_t position) {
  std::size_t line = line_of(position);
  std::size_t begin = line_begin_;
  if (position < begin) {  // in a head of several lines, before the function's name
    line -= static_cast<std::size_t>(std::ranges::count(text_.substr(position, begin - position), '\n'));
    const std::size_t last = text_.substr(0, position).rfind('\n');
    begin = last == std::string_view::npos ? 0 : last + 1;
  }
  return std::to_string(line) + ":" + std::to_string(position - begin + 1);
}

void Unit::function(const Signature& signature, std::size_t begin) {
  const std::size_t start = position_of(signature.name);
  SharedFunction known{.name = std::string(signature.name.text), .line = line_of(start), .reason = {}};
  std::optional<Refusal> refusal = signature.refusal;
  const std::size_t first = position_of(tokens_.front());
  const std::size_t printed_first = printed_place(first);
  bool is_helper = false;
  if (!blocked_.empty()) {
    refusal = Refusal{start, blocked_};
  } else if (conditionals_ > 0) {
    refusal = Refusal{start, "conditional compilation"};
  }
  if (!refusal) {
    reader_.start(begin);
    auto body = read_body(reader_, declarations_, signature);
    if (body) {
      const std::size_t end = reader_.position();
      known.is_shared = true;
      print(*body, signature, begin, end);
      lexer_.seek(end + 1);
      is_helper = keep_helper(std::move(*body), signature);
      if (is_helper && is_droppable(tokens_))
        note_local(signature.name.text, {first, end + 1}, {printed_first, printed_place(end + 1)});
    } else {
      refusal = std::move(body.error());
    }
  }
  if (refusal) {
    known.reason = place(refusal->position) + ": " + refusal->reason;
    lexer_.seek(begin);
    skip_block();
  }
  if (!is_helper && !signature.name.text.empty() && declarations_.names.find(signature.name).kind != Symbol::kMacro)
    declarations_.names.set(signature.name, {Symbol::kUnknown, Type::kOther, 0});
  result_.functions.push_back(std::move(known));
}

// Printed text must stay what it is when it is shared again. It may lack a read that told that an element exists, so it
// is read and printed until nothing changes.
std::optional<Printed> Unit::settle(Printed printed, const Signature& signature) const {
  constexpr int kMostRounds = 4;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::string text = printed.text + "}";
    Reader reader(text);
    reader.start(0);
    const auto body = read_body(reader, declarations_, signature);
    if (!body) return std::nullopt;
    auto again = c::print(*body, signature, underscores_);
    if (!again) return std::nullopt;
    if (again->text == printed.text) return printed;
    printed = std::move(*again);
  }
  return std::nullopt;
}

void Unit::print(const Body& body, const Signature& signature, std::size_t begin, std::size_t end) {
  auto printed = c::print(body, signature, underscores_);
  if (!printed) return;
  const bool has_temporaries = printed->temporaries > 0;
  if (body.has_arms) printed = settle(std::move(*printed), signature);
  if (!printed) return;
  result_.nodes += printed->nodes;
  // Nothing was to be shared: what the author wrote reads better.
  if (!has_temporaries && printed->text.size() >= end - begin) return;
  result_.temporaries += printed->temporaries;
  result_.text.append(text_.substr(copied_, begin - copied_)).append(printed->text);
  copied_ = end;
}

// static double helper(double);
void Unit::note_prototype() {
  const auto open = std::ranges::find_if(tokens_, [](const Token& token) { return token.is('('); });
  if (open == tokens_.end() || open == tokens_.begin() || !is_droppable(tokens_)) return;
  const Token& name = *(open - 1);
  if (name.kind != Token::kIdentifier || std::ranges::any_of(tokens_, [](const Token& one) { return one.is('='); }))
    return;
  const std::size_t begin = position_of(tokens_.front()), end = lexer_.position();
  note_local(name.text, {begin, end}, {printed_place(begin), printed_place(end)});
}

void Unit::note_local(std::string_view name, Place given, Place printed) {
  const auto [entry, is_new] = locals_.try_emplace(name, given_.size());
  if (is_new) {
    given_.push_back({name, {}});
    printed_.push_back({name, {}});
  }
  given_[entry->second].places.push_back(given);
  printed_[entry->second].places.push_back(printed);
}

// Helpers that now stand in place of all their calls. What nothing called before stays.
void Unit::drop_unused() {
  if (printed_.empty()) return;
  const std::vector<bool> before = find_unused(text_, given_);
  const std::vector<bool> now = find_unused(result_.text, printed_);
  std::vector<Place> places;
  for (std::size_t i = 0; i < printed_.size(); ++i)
    if (now[i] && !before[i]) places.insert(places.end(), printed_[i].places.begin(), printed_[i].places.end());
  if (!places.empty()) result_.text = without(result_.text, std::move(places));
}

bool Unit::keep_helper(Body&& body, const Signature& signature) {
  const auto is_plain = [](const Parameter& parameter) {
    return !parameter.is_array && parameter.type == Type::kDouble && !parameter.name.text.empty();
  };
  if (!signature.is_local || !body.result || !std::ranges::all_of(signature.parameters, is_plain) ||
      body.graph->size() > kMostHelperNodes)
    return false;
  declarations_.names.set(
      signature.name, {Symbol::kHelper, signature.result, static_cast<std::uint32_t>(declarations_.helpers.size())});
  declarations_.helpers.push_back({.name = std::string(signature.name.text),
                                   .graph = std::move(*body.graph),
                                   .result = *body.result,
                                   .parameters = std::move(body.scalars),
                                   .calls_library = body.calls_library});
  return true;
}

}  // namespace jitc::graph::c
