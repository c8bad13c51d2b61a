#include "common/flags.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include "common/isa.h"
#include "common/utf8.h"

namespace jitc::common {
namespace {

// -f options (without -f and a leading no-) whose whole effect is in their text. What is not here is refused: an option
// that a future compiler invents may read a file.
constexpr std::array kCodeOptions = std::to_array<std::string_view>({"PIC",
                                                                     "pic",
                                                                     "PIE",
                                                                     "pie",
                                                                     "fast-math",
                                                                     "finite-math-only",
                                                                     "math-errno",
                                                                     "trapping-math",
                                                                     "signed-zeros",
                                                                     "associative-math",
                                                                     "reciprocal-math",
                                                                     "rounding-math",
                                                                     "unsafe-math-optimizations",
                                                                     "honor-nans",
                                                                     "honor-infinities",
                                                                     "fp-contract",
                                                                     "fp-model",
                                                                     "fp-exception-behavior",
                                                                     "fp-eval-method",
                                                                     "excess-precision",
                                                                     "float-store",
                                                                     "single-precision-constant",
                                                                     "cx-limited-range",
                                                                     "cx-fortran-rules",
                                                                     "builtin",
                                                                     "strict-aliasing",
                                                                     "strict-overflow",
                                                                     "wrapv",
                                                                     "trapv",
                                                                     "delete-null-pointer-checks",
                                                                     "omit-frame-pointer",
                                                                     "inline",
                                                                     "inline-functions",
                                                                     "inline-small-functions",
                                                                     "inline-limit",
                                                                     "unroll-loops",
                                                                     "unroll-all-loops",
                                                                     "peel-loops",
                                                                     "vectorize",
                                                                     "tree-vectorize",
                                                                     "slp-vectorize",
                                                                     "tree-slp-vectorize",
                                                                     "tree-loop-vectorize",
                                                                     "vect-cost-model",
                                                                     "simd-cost-model",
                                                                     "signed-char",
                                                                     "unsigned-char",
                                                                     "short-enums",
                                                                     "common",
                                                                     "function-sections",
                                                                     "data-sections",
                                                                     "merge-constants",
                                                                     "merge-all-constants",
                                                                     "gcse",
                                                                     "ivopts",
                                                                     "ipa-cp",
                                                                     "ipa-pta",
                                                                     "ipa-ra",
                                                                     "loop-interchange",
                                                                     "split-loops",
                                                                     "unswitch-loops",
                                                                     "prefetch-loop-arrays",
                                                                     "predictive-commoning",
                                                                     "schedule-insns",
                                                                     "schedule-insns2",
                                                                     "rename-registers",
                                                                     "tree-pre",
                                                                     "tree-vrp",
                                                                     "tree-ter",
                                                                     "var-tracking",
                                                                     "var-tracking-assignments",
                                                                     "stack-protector",
                                                                     "stack-protector-strong",
                                                                     "stack-clash-protection",
                                                                     "cf-protection",
                                                                     "plt",
                                                                     "semantic-interposition",
                                                                     "visibility",
                                                                     "asynchronous-unwind-tables",
                                                                     "unwind-tables",
                                                                     "exceptions",
                                                                     "non-call-exceptions",
                                                                     "bracket-depth",
                                                                     "max-errors",
                                                                     "diagnostics-color",
                                                                     "color-diagnostics",
                                                                     "message-length",
                                                                     "caret-diagnostics",
                                                                     "diagnostics-show-caret",
                                                                     "lax-vector-conversions",
                                                                     "freestanding",
                                                                     "hosted",
                                                                     "openmp-simd",
                                                                     "debug-types-section",
                                                                     "zero-initialized-in-bss",
                                                                     "align-functions",
                                                                     "align-loops",
                                                                     "jump-tables",
                                                                     "ident"});

// Whole flags.
constexpr std::array kPlainFlags = std::to_array<std::string_view>({"-w",
                                                                    "-pedantic",
                                                                    "-pedantic-errors",
                                                                    "-ansi",
                                                                    "-pipe",
                                                                    "-fPIC",
                                                                    "-shared",
                                                                    "-undef",
                                                                    "-trigraphs",
                                                                    "-g",
                                                                    "-g0",
                                                                    "-g1",
                                                                    "-g2",
                                                                    "-g3",
                                                                    "-ggdb",
                                                                    "-gdwarf",
                                                                    "-gdwarf-4",
                                                                    "-gdwarf-5",
                                                                    "-gline-tables-only",
                                                                    "-gno-column-info"});

// Options of -f that change arithmetic, in these senses: what compilers turn on by -ffast-math, and other types.
constexpr std::array kValueOptions =
    std::to_array<std::string_view>({"fast-math", "unsafe-math-optimizations", "associative-math", "reciprocal-math",
                                     "finite-math-only", "no-signed-zeros", "no-honor-nans", "no-honor-infinities",
                                     "single-precision-constant", "fp-model=fast", "fp-model=aggressive"});

std::string_view name_before_value(std::string_view text) { return text.substr(0, text.find('=')); }

bool is_code_option(std::string_view flag) {
  std::string_view name = flag.substr(2);
  if (name.starts_with("no-")) name.remove_prefix(3);
  return std::ranges::find(kCodeOptions, name_before_value(name)) != kCodeOptions.end();
}

bool is_warning(std::string_view flag) {
  // -Wl, -Wa, -Wp, hand options to the linker, the assembler, the preprocessor.
  return flag.starts_with("-W") && flag.find(',') == std::string_view::npos && flag != "-W" &&
         !flag.starts_with("-Wsystem-headers-in-module");
}

bool is_macro(std::string_view flag) {
  if (!flag.starts_with("-D") && !flag.starts_with("-U")) return false;
  const std::string_view name = name_before_value(flag.substr(2));
  return !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) != 0 || name[0] == '_');
}

bool is_optimisation(std::string_view flag) {
  return flag.starts_with("-O") &&
         (flag.size() == 2 || (flag.size() == 3 && std::string_view("0123sgz").contains(flag[2])) || flag == "-Ofast");
}

bool is_inside(std::string_view path, std::span<const std::string> roots) {
  if (path.find("..") != std::string_view::npos) return false;
  return std::ranges::any_of(roots, [path](const std::string& root) {
    return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
  });
}

bool is_allowed(const std::string& flag) {
  if (std::ranges::find(kPlainFlags, std::string_view(flag)) != kPlainFlags.end()) return true;
  if (flag.starts_with("-f")) return is_code_option(flag);
  return flag.starts_with("-std=") || is_optimisation(flag) || is_warning(flag) || is_macro(flag);
}

std::unexpected<Error> refused(const std::string& flag, std::string message, std::string remedy) {
  return fail(ErrorKind::kRefused, std::move(message), "flag " + flag, std::move(remedy));
}

// Where a text goes beyond a limit, and what is to be said about it.
struct Excess {
  std::size_t at = 0;
  std::string message;
};

// Keywords that stand before an operand, or between the stars of a declarator: a run of operators goes on over them.
constexpr std::array kPrefixKeywords =
    std::to_array<std::string_view>({"sizeof", "_Alignof", "alignof", "__extension__", "__real__", "__imag__", "const",
                                     "volatile", "restrict", "__restrict", "__restrict__", "_Atomic"});

// What stands before a statement, which need not be in braces.
constexpr std::array kStatementHeads = std::to_array<std::string_view>({"if", "for", "while", "do", "switch"});

// Walks C text outside comments, strings and directives; knows where it is.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  SourceScan run() {
    scan_.bytes = text_.size();
    scan_.lines = static_cast<std::uint64_t>(std::ranges::count(text_, '\n'));
    while (at_ < text_.size() && !excess_) step();
    return scan_;
  }
  const std::optional<Excess>& excess() const { return excess_; }

 private:
  // What goes on within one pair of brackets.
  struct Level {
    std::uint64_t run = 0;           // before the bracket; what closes it goes on with it
    std::uint32_t conditionals = 0;  // ?: of the current expression
    std::uint32_t assignments = 0;   // of the current expression
    std::uint32_t else_ifs = 0;      // of the current statement
    std::uint32_t heads = 0;  // if, for, while, do, switch that the current statement is inside of, without braces
  };

  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void step() {
    const char c = peek();
    if (c == '\n') {
      line_start_ = true;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '/' && (peek(1) == '/' || peek(1) == '*')) {
      skip_comment();
    } else if (c == '#' && line_start_) {
      skip_directive();
    } else {
      line_start_ = false;
      token(c);
    }
  }

  void token(char c) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_') {
      identifier();
      return;
    }
    after_else_ = false;
    if (std::string_view("*&-+!~").contains(c)) {
      if (after_close_ && c != '!' && c != '~') run_ = 0;  // between two operands
      after_close_ = false;
      ++at_;
      prefix();
    } else if (c == '"' || c == '\'') {
      run_ = 0;
      after_close_ = false;
      skip_quoted(c);
    } else {
      after_close_ = false;
      if (c != '(' && c != '[') run_ = 0;
      separator(c);
      bracket(c);
      ++at_;
    }
  }

  void identifier() {
    const std::size_t begin = at_;
    while (std::isalnum(static_cast<unsigned char>(peek())) != 0 || peek() == '_') ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    after_close_ = false;
    if (std::ranges::find(kPrefixKeywords, name) != kPrefixKeywords.end()) {
      prefix();
    } else {
      run_ = 0;
    }
    if (name == "if") {
      levels_.back().else_ifs = after_else_ ? levels_.back().else_ifs + 1 : 0;
      chain(levels_.back().else_ifs, "else if");
    }
    if (std::ranges::find(kStatementHeads, name) != kStatementHeads.end())
      chain(++levels_.back().heads, "statements without braces");
    after_else_ = name == "else";
    std::size_t next = at_;
    while (next < text_.size() && (text_[next] == ' ' || text_[next] == '\t')) ++next;
    if (next < text_.size() && text_[next] == '(') ++scan_.calls;
  }

  // One more of a run of operators before an operand: compilers go down for each as for a bracket.
  void prefix() {
    ++run_;
    nest(depth_ + run_);
  }

  void nest(std::uint64_t depth) {
    scan_.nesting = std::max(scan_.nesting, depth);
    if (depth > kMaxNesting)
      exceed("brackets and operators before operands nest deeper than " + std::to_string(kMaxNesting) + " levels");
  }

  void chain(std::uint64_t length, std::string_view what) {
    scan_.chain = std::max(scan_.chain, length);
    if (length > kMaxChain)
      exceed("more than " + std::to_string(kMaxChain) + " " + std::string(what) + " follow each other");
  }

  void exceed(std::string message) {
    if (!excess_) excess_ = Excess{at_ > 0 && run_ > 0 ? at_ - 1 : at_, std::move(message)};
  }

  void separator(char c) {
    Level& level = levels_.back();
    if (c == '?') chain(++level.conditionals, "?:");
    if (c == '=') assignment();
    if (c == ';' || c == ',') level.conditionals = level.assignments = 0;
    if (c == ';' || c == '{') level.heads = 0;
  }

  void assignment() {
    const char before = at_ > 0 ? text_[at_ - 1] : '\0';
    const bool shifts = at_ > 1 && text_[at_ - 2] == before;
    const bool compares = before == '!' || ((before == '<' || before == '>') && !shifts);
    if (peek(1) == '=') {
      ++at_;
    } else if (!compares) {
      chain(++levels_.back().assignments, "assignments");
    }
  }

  void bracket(char c) {
    if (c == '(' || c == '[' || c == '{') open(c);
    if (c == ')' || c == ']' || c == '}') close(c);
  }

  void open(char c) {
    const std::uint64_t run = levels_.emplace_back(Level{.run = std::exchange(run_, 0)}).run;
    if (c != '{') {
      ++depth_;
      return nest(depth_ - 1 + std::max<std::uint64_t>(run, 1));
    }
    if (braces_ == 0) block_start_ = at_;
    scan_.blocks = std::max(scan_.blocks, ++braces_);
    if (braces_ > kMaxBlocks) exceed("braces nest deeper than " + std::to_string(kMaxBlocks) + " levels");
  }

  void close(char c) {
    const std::uint64_t run = levels_.back().run;
    if (levels_.size() > 1) levels_.pop_back();
    if (c != '}') {
      if (depth_ > 0) --depth_;
      // A cast, if an operand follows; a call or an index, if more brackets do: compilers go down for each.
      after_close_ = true;
      run_ = run + 1;
      return;
    }
    levels_.back().conditionals = levels_.back().assignments = levels_.back().heads = 0;
    if (braces_ == 0) return;
    --braces_;
    if (braces_ == 0) scan_.largest_function = std::max<std::uint64_t>(scan_.largest_function, at_ + 1 - block_start_);
  }

  void skip_comment() {
    const bool block = peek(1) == '*';
    const auto end = text_.find(block ? "*/" : "\n", at_ + 2);
    at_ = end == std::string_view::npos ? text_.size() : end + (block ? 2 : 0);
  }

  void skip_quoted(char quote) {
    for (++at_; at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n'; ++at_)
      if (text_[at_] == '\\') ++at_;
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }

  // Up to the end of the line, lines that a backslash continues included. What a macro's body nests shows up nowhere
  // else, so brackets are counted here too.
  void skip_directive() {
    const auto saved_depth = depth_;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (text_[at_] == '\\') {
        at_ += peek(1) == '\r' ? 3 : 2;
        continue;
      }
      const char c = text_[at_];
      if (c == '(' || c == '[' || c == '{') nest(++depth_);
      if ((c == ')' || c == ']' || c == '}') && depth_ > saved_depth) --depth_;
      if (excess_) return;
      ++at_;
    }
    depth_ = saved_depth;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool line_start_ = true;
  std::uint64_t depth_ = 0;  // ( and [
  std::uint64_t braces_ = 0;
  std::uint64_t run_ = 0;  // of operators, casts among them, before an operand
  bool after_else_ = false;
  bool after_close_ = false;  // of ) or ]: then the next operator may be one between operands
  std::vector<Level> levels_ = std::vector<Level>(1);
  std::optional<Excess> excess_;
  std::size_t block_start_ = 0;
  SourceScan scan_;
};

std::optional<std::size_t> first_bad_byte(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\0' ? 0 : utf8_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::unexpected<Error> invalid_at(std::string_view text, std::size_t at, std::string message, std::string remedy) {
  const std::string_view before = text.substr(0, at);
  const auto line = static_cast<std::uint32_t>(std::ranges::count(before, '\n') + 1);
  const auto newline = before.rfind('\n');
  const auto column = static_cast<std::uint32_t>(newline == std::string_view::npos ? at + 1 : at - newline);
  auto failure = fail(ErrorKind::kInvalidSource, message, {}, std::move(remedy));
  failure.error().diagnostics.push_back({"error", line, column, std::move(message), {}});
  return failure;
}

}  // namespace

bool keep_values(std::span<const std::string> flags) {
  return std::ranges::none_of(flags, [](const std::string& flag) {
    return flag == "-Ofast" ||
           (flag.starts_with("-f") &&
            std::ranges::find(kValueOptions, std::string_view(flag).substr(2)) != kValueOptions.end());
  });
}

Result<void> check_flags(std::span<const std::string> flags, std::span<const std::string> include_roots) {
  for (std::size_t i = 0; i < flags.size(); ++i) {
    const std::string& flag = flags[i];
    if (flag.starts_with("-I")) {
      const bool separate = flag.size() == 2;
      if (separate && i + 1 == flags.size())
        return refused(flag, "a directory must follow", "write -I and the directory");
      const std::string directory = separate ? flags[++i] : flag.substr(2);
      if (!is_inside(directory, include_roots))
        return refused("-I" + directory, "this directory's contents are not in the key",
                       "send the headers with the request, or let the daemon's include_roots name the directory");
      continue;
    }
    if (flag.starts_with("-m")) {
      if (auto needed = isa_needed({&flag, 1}); !needed) return std::unexpected(needed.error());
      continue;
    }
    if (!is_allowed(flag))
      return refused(flag, "it may read, write or run what is not in the key",
                     "leave it out; options for code generation, warnings, -D, -U, -O, -g, -std are allowed");
  }
  return {};
}

Result<std::vector<std::string>> split_flags(std::string_view text) {
  std::vector<std::string> flags;
  std::string word;
  for (const char c : text) {
    if (c == '"' || c == '\'' || c == '\\')
      return fail(ErrorKind::kUsage, std::string("the character ") + c + " is not taken",
                  "flags '" + std::string(text) + "'", "separate flags by blanks, without quotes");
    if (c != ' ' && c != '\t' && c != '\n') {
      word.push_back(c);
    } else if (!word.empty()) {
      flags.push_back(std::exchange(word, {}));
    }
  }
  if (!word.empty()) flags.push_back(std::move(word));
  return flags;
}

SourceScan scan_source(std::string_view text) { return Scanner(text).run(); }

Result<SourceScan> check_source(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    return fail(ErrorKind::kUsage, "the source is empty", {}, "give C text that defines at least one function");
  if (const auto bad = first_bad_byte(text))
    return invalid_at(text, *bad, text[*bad] == '\0' ? "a NUL byte" : "not valid UTF-8",
                      "C text is UTF-8 without NUL bytes");
  Scanner scanner(text);
  const SourceScan scan = scanner.run();
  if (const auto& excess = scanner.excess())
    return invalid_at(text, excess->at, excess->message, "name sub-expressions, so that the text nests less");
  return scan;
}

}  // namespace jitc::common
