#include "daemon/worker/preprocessed_text.h"

#include <clang/Basic/LangOptions.h>
#include <clang/Lex/Lexer.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "daemon/worker/builtin_headers.h"
#include "daemon/worker/job.h"

namespace jitc::worker {
namespace {

using common::Result;

constexpr std::array<std::string_view, 3> kClockMacros = {"__DATE__", "__TIME__", "__TIMESTAMP__"};
constexpr std::array<std::string_view, 3> kAssembler = {"asm", "__asm", "__asm__"};
constexpr std::array<std::string_view, 2> kAttribute = {"__attribute__", "__attribute"};
// Attributes whose strings are for people only.
constexpr std::array<std::string_view, 4> kSpokenAttributes = {"deprecated", "warning", "error", "unavailable"};
constexpr std::array<std::string_view, 3> kTargetAttributes = {"target", "target_clones", "target_version"};
constexpr std::array<std::string_view, 13> kPragmas = {
    "STDC",       "omp",          "pack",           "message",           "clang loop",     "unroll",    "GCC ivdep",
    "GCC unroll", "GCC optimize", "GCC diagnostic", "GCC system_header", "GCC visibility", "GCC poison"};
constexpr std::array<std::string_view, 2> kStackPragmas = {"GCC push_options", "GCC pop_options"};

template <class Names>
bool is_one_of(std::string_view name, const Names& names) {
  return std::ranges::find(names, name) != std::end(names);
}

bool is_raw_prefix(std::string_view name) {
  return name == "R" || name == "LR" || name == "uR" || name == "UR" || name == "u8R";
}

// Clang's lexer over one text; its raw mode knows nothing but tokens.
class Tokens {
 public:
  enum class Comments { kSkip, kKeep };
  Tokens(const std::string& text, Comments comments, bool trigraphs)
      : options_(c_with(trigraphs)),
        lexer_(clang::SourceLocation(), options_, text.data(), text.data(), text.data() + text.size()),
        text_(text) {
    lexer_.SetCommentRetentionState(comments == Comments::kKeep);
  }

  struct One {
    clang::Token token;
    std::size_t at = 0;
    std::string_view text;
    bool is(clang::tok::TokenKind kind) const { return token.is(kind); }
  };
  One next() {
    One one;
    lexer_.LexFromRawLexer(one.token);
    one.at = static_cast<std::size_t>(lexer_.getBufferLocation() - text_.data()) - one.token.getLength();
    one.text = text_.substr(one.at, one.token.getLength());
    return one;
  }
  // The name without the line ends and trigraphs that may be in it.
  std::string name_of(const One& one) const {
    std::string name;
    for (std::size_t i = 0; i < one.text.size(); ++i) {
      const std::string_view rest = one.text.substr(i);
      if (rest.starts_with("?\?/")) {
        i += 2;
      } else if (std::isalnum(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '_' || rest[0] == '$') {
        name += rest[0];
      }
    }
    return name;
  }

 private:
  static clang::LangOptions c_with(bool trigraphs) {
    clang::LangOptions options;
    options.C99 = options.C11 = options.GNUMode = options.LineComment = options.Digraphs = options.DollarIdents = 1;
    options.Trigraphs = trigraphs;
    return options;
  }

  clang::LangOptions options_;
  clang::Lexer lexer_;
  std::string_view text_;
};

bool is_raw_string(const Tokens::One& one) {
  return clang::tok::isStringLiteral(one.token.getKind()) && is_raw_prefix(one.text.substr(0, one.text.find('"')));
}

std::unexpected<common::Error> refuse(std::string_view file, std::size_t line, std::string message) {
  const std::string place = std::string(file) + ":" + std::to_string(line) + ": ";
  const bool is_source = file == kSourceName;
  auto failure = common::fail(common::ErrorKind::kRefused, is_source ? message : place + message);
  failure.error().diagnostics.push_back(
      {"error", is_source ? static_cast<std::uint32_t>(line) : 0U, 0, failure.error().message, {}});
  return failure;
}

std::size_t line_at(std::string_view text, std::size_t at) {
  return static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n')) + 1;
}

Result<void> check_directives(const std::string& text, std::string_view file, bool trigraphs) {
  Tokens tokens(text, Tokens::Comments::kSkip, trigraphs);
  bool hash = false;
  std::size_t raw_prefix_end = 0;
  for (auto one = tokens.next(); !one.is(clang::tok::eof); one = tokens.next()) {
    hash = hash && !one.token.isAtStartOfLine();
    // Not every compiler knows them in C: what one takes for a comment another would take for text.
    if (is_raw_string(one) || (one.is(clang::tok::string_literal) && raw_prefix_end == one.at && raw_prefix_end > 0)) {
      return refuse(file, line_at(text, one.at), "raw strings are not compiled; write an ordinary one");
    }
    const std::string name = one.is(clang::tok::raw_identifier) ? tokens.name_of(one) : std::string();
    if (hash && (one.is(clang::tok::numeric_constant) || name == "line")) {
      return refuse(file, line_at(text, one.at), "#line would hide where the text comes from; leave it out");
    }
    if (hash && name == "embed") {
      return refuse(file, line_at(text, one.at), "#embed reads a file that is not in the key; write its bytes");
    }
    if (name.starts_with("__has_include") || name == "__has_embed") {
      return refuse(file, line_at(text, one.at), name + " asks for files that are not in the key; decide before");
    }
    raw_prefix_end = is_raw_prefix(name) ? one.at + one.text.size() : 0;
    hash = one.is(clang::tok::hash) && one.token.isAtStartOfLine();
  }
  return {};
}

std::string real_path(const std::string& path) {
  const std::unique_ptr<char, decltype(&std::free)> real(realpath(path.c_str(), nullptr), &std::free);
  return real != nullptr ? std::string(real.get()) : std::string();
}

bool is_inside(const std::string& path, const std::string& directory) {
  return !directory.empty() && path.starts_with(directory) &&
         (path.size() == directory.size() || directory == "/" || path[directory.size()] == '/');
}

// "# 12 "file" 1 3 4", as every preprocessor writes where a text comes from.
struct Marker {
  std::size_t line = 0;
  std::string file;
  bool enters = false;
  bool returns = false;
};

std::optional<Marker> marker_in(std::string_view line) {
  Marker marker;
  if (!line.starts_with("# ")) return std::nullopt;
  line.remove_prefix(2);
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), marker.line);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  const std::size_t last = line.rfind('"');
  if (!line.starts_with(" \"") || last < 2) return std::nullopt;
  marker.file = line.substr(2, last - 2);
  const std::string flags = std::string(line.substr(last + 1)) + " ";
  marker.enters = flags.starts_with(" 1 ");
  marker.returns = flags.starts_with(" 2 ");
  return marker;
}

// Follows the markers: which file the text is from, and whether that file may be read at all.
class Origins {
 public:
  Origins(std::span<const std::string> directories, std::span<const std::string> roots)
      : own_(std::filesystem::current_path()) {
    for (const std::string& root : roots) roots_.push_back(real_path(root));
    for (const std::string& directory : directories) {
      const std::string real = real_path(directory);
      if (real != own_ && !is_one_of(real, roots_)) system_.push_back(real);
    }
  }

  Result<void> take(const Marker& marker) {
    const bool from_system = files_.empty() || is_pseudo(files_.back()) || is_system(files_.back());
    if (marker.returns) {
      if (!files_.empty()) files_.pop_back();
      if (!files_.empty()) files_.back() = marker.file;
    } else if (marker.enters || files_.empty()) {
      files_.push_back(marker.file);
    } else {
      files_.back() = marker.file;
    }
    line_ = marker.line;
    return check(marker.file, from_system);
  }
  void next_line() { ++line_; }
  std::string file() const { return files_.empty() ? kSourceName : shown(files_.back()); }
  std::size_t line() const { return line_; }

 private:
  static bool is_pseudo(const std::string& file) {
    return file == "<built-in>" || file == "<command-line>" || file == "<command line>";
  }
  static std::string shown(const std::string& file) { return file.starts_with("./") ? file.substr(2) : file; }
  bool is_system(const std::string& file) const { return !name_in_system(real_path(file)).empty(); }
  std::string name_in_system(const std::string& real) const {
    std::string name;  // below the innermost directory: the directories of a compiler lie in each other
    for (const std::string& directory : system_) {
      if (!is_inside(real, directory)) continue;
      std::string below = real.substr(std::min(real.size(), directory.size() + 1));
      if (name.empty() || below.size() < name.size()) name = std::move(below);
    }
    return name;
  }

  Result<void> check(const std::string& file, bool from_system) {
    // A compiler names the directory that it works in by a marker of its own.
    if (is_pseudo(file) || file == own_ + "//") return {};
    const std::string real = real_path(file);
    const bool own = is_inside(real, own_);
    const bool rooted = std::ranges::any_of(roots_, [&real](const auto& root) { return is_inside(real, root); });
    if (!real.empty() && (own || rooted)) return {};
    const std::string name = name_in_system(real);
    const bool known =
        std::ranges::any_of(builtin_headers(), [&name](const BuiltinHeader& header) { return header.name == name; });
    if (!name.empty() && (from_system || known)) return {};
    return common::fail(common::ErrorKind::kRefused, refusal_of_include(file));
  }

  std::string own_;
  std::vector<std::string> roots_;
  std::vector<std::string> system_;
  std::vector<std::string> files_;
  std::size_t line_ = 0;
};

bool is_plain(std::string_view literal) {
  return literal.size() >= 2 && literal.front() == '"' &&
         std::ranges::all_of(literal.substr(1, literal.size() - 2), [](unsigned char c) {
           return std::isalnum(c) != 0 || std::string_view("_.$").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

std::string_view bare(std::string_view name) {
  if (name.size() > 4 && name.starts_with("__") && name.ends_with("__")) return name.substr(2, name.size() - 4);
  return name;
}

// One pass over preprocessed text.
class Walk {
 public:
  Walk(const std::string& text, Origins& origins)
      : text_(text), tokens_(text, Tokens::Comments::kKeep, false), origins_(origins) {}

  Result<void> run() {
    for (auto one = tokens_.next(); !one.is(clang::tok::eof); one = tokens_.next()) {
      if (one.is(clang::tok::comment)) return stop("a comment is left in the preprocessed text");
      if (one.at < directive_end_) continue;
      if (one.is(clang::tok::hash) && one.token.isAtStartOfLine()) {
        if (auto taken = directive(one.at); !taken) return taken;
        continue;
      }
      count_lines_to(one.at);
      if (auto taken = token(one); !taken) return taken;
    }
    return {};
  }

 private:
  Result<void> stop(std::string message) const { return refuse(origins_.file(), origins_.line(), std::move(message)); }

  void count_lines_to(std::size_t at) {
    for (; counted_ < at; ++counted_) {
      if (text_[counted_] == '\n') origins_.next_line();
    }
  }

  Result<void> directive(std::size_t at) {
    const std::size_t end = std::min(text_.find('\n', at), text_.size());
    const std::string_view line = std::string_view(text_).substr(at, end - at);
    directive_end_ = end;
    if (const auto marker = marker_in(line)) {
      counted_ = std::min(end + 1, text_.size());
      return origins_.take(*marker);
    }
    count_lines_to(at);
    constexpr std::string_view kPragma = "#pragma ";
    const auto is_named = [&](std::string_view name) {
      const std::string_view rest = line.substr(kPragma.size());
      return rest.starts_with(name) && (rest.size() == name.size() || !is_name_byte(rest[name.size()]));
    };
    const bool harmless = line.starts_with(kPragma) &&
                          (std::ranges::any_of(kPragmas, is_named) || std::ranges::any_of(kStackPragmas, is_named));
    if (harmless) return {};
    return stop("\"" + shortened(line, 80) +
                "\" is not among the directives that are passed to a compiler; leave it out");
  }
  static bool is_name_byte(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

  Result<void> token(const Tokens::One& one) {
    using namespace clang::tok;
    if (one.is(raw_identifier)) return identifier(one);
    const bool is_string = isStringLiteral(one.token.getKind());
    if (is_raw_string(one) || (is_string && is_raw_prefix(last_name_) && name_end_ == one.at)) {
      return stop("raw strings are not compiled; write an ordinary one");
    }
    if (asm_depth_ > 0 || asm_pending_) return assembler(one, is_string);
    if (one.is(l_square) && square_end_ == one.at && attribute_depth_ == 0) attribute_depth_ = depth_;
    if (one.is(l_paren) || one.is(l_square)) open(one);
    if (one.is(r_paren) || one.is(r_square)) close();
    if (is_string && attribute_depth_ > 0 && !is_one_of(bare(last_name_), kSpokenAttributes) && !is_plain(one.text)) {
      return stop("attribute " + last_name_ + "(" + shortened(one.text, 80) +
                  "): such names may hold letters, digits, _ . $ only");
    }
    if (!one.is(l_paren) && !is_string) attribute_pending_ = false;
    return {};
  }

  Result<void> identifier(const Tokens::One& one) {
    const std::string name = tokens_.name_of(one);
    last_name_ = name;
    name_end_ = one.at + one.text.size();
    for (const std::string_view macro : kClockMacros) {
      if (name == stand_in_for(macro)) {
        return stop(std::string(macro) + " would make every compile another one; take the time at run time");
      }
    }
    if (asm_depth_ > 0 || asm_pending_) return refuse_assembler();
    if (is_one_of(name, kAssembler)) asm_pending_ = true;
    if (is_one_of(name, kAttribute)) attribute_pending_ = true;
    if (attribute_depth_ > 0 && is_one_of(bare(name), kTargetAttributes)) {
      return stop("attribute " + name +
                  " raises the instruction set beyond the agreed level; ask for the level by --isa");
    }
    return {};
  }

  // asm("name") behind a declaration is left, and only with a name that is one.
  Result<void> assembler(const Tokens::One& one, bool is_string) {
    if (one.is(clang::tok::l_paren) && asm_pending_) {
      asm_pending_ = false;
      asm_depth_ = 1;
      return {};
    }
    if (one.is(clang::tok::r_paren) && asm_depth_ > 0) {
      asm_depth_ = 0;
      return {};
    }
    return is_string && is_plain(one.text) ? Result<void>() : refuse_assembler();
  }
  Result<void> refuse_assembler() const {
    return stop("assembler is not compiled: it can read files and hide what it does; write it in C");
  }

  void open(const Tokens::One& one) {
    ++depth_;
    if (attribute_pending_ && attribute_depth_ == 0) attribute_depth_ = depth_;
    if (one.is(clang::tok::l_square)) square_end_ = one.at + 1;
  }
  void close() {
    if (attribute_depth_ == depth_) attribute_depth_ = 0;
    if (depth_ > 0) --depth_;
  }

  const std::string& text_;
  Tokens tokens_;
  Origins& origins_;
  std::size_t counted_ = 0;
  std::size_t directive_end_ = 0;
  std::string last_name_;
  std::size_t name_end_ = 0;
  std::size_t square_end_ = 0;
  std::size_t depth_ = 0;
  std::size_t attribute_depth_ = 0;  // of the bracket that an attribute opened; 0: not inside one
  bool attribute_pending_ = false;
  bool asm_pending_ = false;
  int asm_depth_ = 0;
};

constexpr std::string_view kListBegin = " search starts here:\n";
constexpr std::string_view kListEnd = "End of search list.\n";

}  // namespace

std::string stand_in_for(std::string_view macro) { return "jitc_refuses" + std::string(macro); }
std::span<const std::string_view> clock_macros() { return kClockMacros; }

Result<void> check_before_preprocessing(const std::string& text, std::string_view name) {
  for (const bool trigraphs : {false, true}) {
    if (auto checked = check_directives(text, name, trigraphs); !checked) return checked;
  }
  return {};
}

Result<void> check_preprocessed(const std::string& text, std::span<const std::string> directories,
                                std::span<const std::string> roots) {
  Origins origins(directories, roots);
  return Walk(text, origins).run();
}

std::vector<std::string> include_directories_in(std::string_view log) {
  std::vector<std::string> directories;
  const std::size_t begin = log.find(kListBegin);
  const std::size_t end = log.find(kListEnd);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return directories;
  std::string_view list = log.substr(begin, end - begin);
  while (!list.empty()) {
    const std::string_view line = list.substr(0, list.find('\n'));
    list.remove_prefix(std::min(line.size() + 1, list.size()));
    if (line.starts_with(" ") && !line.starts_with(" search")) directories.emplace_back(line.substr(1));
  }
  return directories;
}

bool is_of_clang(std::string_view log) {
  return log.substr(0, log.find(kListBegin)).find("clang -cc1 version ") != std::string_view::npos;
}

std::string without_verbose_lines(std::string_view log) {
  if (const std::size_t end = log.find(kListEnd); end != std::string_view::npos) {
    log.remove_prefix(end + kListEnd.size());
  }
  std::string kept;
  while (!log.empty()) {
    const std::string_view line = log.substr(0, log.find('\n'));
    const bool verbose = std::ranges::any_of(
        std::initializer_list<std::string_view>{"COMPILER_PATH=", "LIBRARY_PATH=", "COLLECT_GCC_OPTIONS="},
        [line](std::string_view mark) { return line.starts_with(mark); });
    log.remove_prefix(std::min(line.size() + 1, log.size()));
    if (!verbose) kept += std::string(line) + "\n";
  }
  return kept;
}

}  // namespace jitc::worker
