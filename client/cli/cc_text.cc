#include "client/cli/cc_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <unordered_set>
#include <utility>

namespace jitc::cli {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The name of a marker: # 12 "name" 1 3
std::optional<std::string> marker_name(std::string_view line) {
  if (!line.starts_with("# ") || line.size() < 3 || !is_digit(line[2])) return std::nullopt;
  const auto begin = line.find('"');
  if (begin == line.npos) return std::nullopt;
  std::string name;
  for (std::size_t i = begin + 1; i < line.size() && line[i] != '"'; ++i) {
    if (line[i] != '\\' || i + 1 == line.size()) {
      name += line[i];
    } else if (i + 3 < line.size() && is_digit(line[i + 1])) {
      int code = 0;
      std::from_chars(line.data() + i + 1, line.data() + i + 4, code, 8);
      name += static_cast<char>(code);
      i += 3;
    } else {
      name += line[++i];
    }
  }
  return name;
}

// <built-in>, <command-line>
bool is_of_no_file(std::string_view name) { return name.starts_with('<') && name.ends_with('>'); }

// The words of a line of -###, which quotes what a shell would read otherwise.
std::vector<std::string> quoted_words(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false, quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == ' ' && !quoted) {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    if (line[i] == '"') {
      quoted = !quoted;
    } else {
      if (line[i] == '\\' && i + 1 < line.size()) ++i;
      words.back() += line[i];
    }
  }
  return words;
}

template <std::size_t size>
bool is_one_of(const std::array<std::string_view, size>& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}
template <std::size_t size>
bool begins_with_one(const std::array<std::string_view, size>& list, std::string_view text) {
  return std::ranges::any_of(list, [text](std::string_view one) { return text.starts_with(one); });
}

// Options of GNU ld that change the output by themselves alone. What makes it look into the libraries of libraries
// (-z defs, --no-undefined), or read and write other files, is not among them.
constexpr auto kPlain = std::to_array<std::string_view>({"-shared",
                                                         "--build-id",
                                                         "--eh-frame-hdr",
                                                         "--as-needed",
                                                         "--no-as-needed",
                                                         "--push-state",
                                                         "--pop-state",
                                                         "-Bsymbolic",
                                                         "-Bsymbolic-functions",
                                                         "--start-group",
                                                         "--end-group",
                                                         "-(",
                                                         "-)",
                                                         "-s",
                                                         "-S",
                                                         "--strip-all",
                                                         "--strip-debug",
                                                         "--gc-sections",
                                                         "--no-gc-sections",
                                                         "--whole-archive",
                                                         "--no-whole-archive",
                                                         "--export-dynamic",
                                                         "-export-dynamic",
                                                         "-E",
                                                         "--enable-new-dtags",
                                                         "--disable-new-dtags",
                                                         "--sort-common",
                                                         "--relax",
                                                         "-O1",
                                                         "-O2",
                                                         "-O0",
                                                         "--allow-shlib-undefined"});
constexpr auto kPlainBeginnings = std::to_array<std::string_view>(
    {"--build-id=", "--hash-style=", "-soname=", "--soname=", "-rpath=", "--rpath=", "-plugin-opt=-pass-through="});
constexpr auto kWithValue =
    std::to_array<std::string_view>({"-m", "-soname", "--soname", "-h", "-rpath", "--rpath", "-u"});
constexpr auto kPlainZ = std::to_array<std::string_view>({"now", "lazy", "relro", "norelro", "noexecstack", "execstack",
                                                          "nodelete", "origin", "separate-code", "noseparate-code"});

class LinkReader {
 public:
  explicit LinkReader(const std::vector<std::string>& words) : words_(words) {}
  std::optional<CcLink> read() {
    bool shared = false;
    for (at_ = 1; at_ < words_.size(); ++at_) {
      shared |= words_[at_] == "-shared";
      if (!take(words_[at_])) return std::nullopt;
    }
    if (!shared) return std::nullopt;
    return std::move(link_);
  }

 private:
  using Kind = CcLink::Item::Kind;
  bool take(const std::string& word) {
    if (!word.starts_with('-')) return add(Kind::kFile, word);
    if (is_one_of(kPlain, word) || begins_with_one(kPlainBeginnings, word)) return add(Kind::kText, word);
    // The driver's own: part of the compiler. Further ones may do anything.
    if (word == "-plugin")
      return next() && !std::exchange(has_plugin_, true) && words_[at_].ends_with("/liblto_plugin.so");
    // The first is a temporary file, the other the driver's own program.
    if (word.starts_with("-plugin-opt=-fresolution=") || word.starts_with("-plugin-opt=/")) return true;
    if (word == "-o") return !std::exchange(has_output_, true) && next();
    if (word == "-z") return next() && is_one_of(kPlainZ, words_[at_]) && add(Kind::kText, "-z " + words_[at_]);
    if (is_one_of(kWithValue, word)) return add(Kind::kText, word) && next() && add(Kind::kText, words_[at_]);
    if (word.starts_with("-l")) return value_of(word, 2) && add(Kind::kLibrary, value_);
    if (word.starts_with("-L")) {
      if (!value_of(word, 2)) return false;
      link_.directories.push_back(value_);
      return true;
    }
    return false;
  }
  bool next() { return ++at_ < words_.size(); }
  bool value_of(const std::string& word, std::size_t name) {
    value_ = word.substr(name);
    if (!value_.empty()) return true;
    if (!next()) return false;
    value_ = words_[at_];
    return true;
  }
  bool add(Kind kind, std::string text) {
    link_.items.push_back({kind, std::move(text)});
    return true;
  }

  const std::vector<std::string>& words_;
  std::size_t at_ = 0;
  std::string value_;
  bool has_plugin_ = false, has_output_ = false;
  CcLink link_;
};

// Without comments, and brackets, commas and semicolons as words of their own.
std::vector<std::string> script_words(std::string_view text) {
  std::vector<std::string> words;
  bool in_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("/*")) {
      const auto end = text.find("*/", i + 2);
      if (end == text.npos) return {};
      i = end + 1;
      in_word = false;
    } else if (std::string_view(" \t\n\v\f\r,;").find(text[i]) != std::string_view::npos) {
      in_word = false;
    } else if (text[i] == '(' || text[i] == ')') {
      words.emplace_back(1, text[i]);
      in_word = false;
    } else {
      if (!std::exchange(in_word, true)) words.emplace_back();
      words.back() += text[i];
    }
  }
  return words;
}

// Looks in the strings of a text for .include and .incbin, perhaps of an asm(".incbin \"" NAME "\""). Pieces of a
// string that stand side by side are one, over the ends of lines too.
class AssemblerInput {
 public:
  bool is_in(std::string_view line) {
    bool found = line.find('"') != line.npos && line.find(kBeginning) != line.npos;
    for (const char c : line) {
      in_pieces_ |= c == '"' && matched_ > 0;
      if (c == '"' || c == ' ' || c == '\t') continue;
      matched_ = c == kBeginning[matched_] ? matched_ + 1 : c == kBeginning[0] ? 1 : 0;
      found |= matched_ == kBeginning.size() && in_pieces_;
      if (matched_ == kBeginning.size()) matched_ = 0;
      if (matched_ <= 1) in_pieces_ = false;
    }
    return found;
  }

 private:
  static constexpr std::string_view kBeginning = ".inc";
  std::size_t matched_ = 0;
  bool in_pieces_ = false;
};

// Looks in the strings of asm(...) for characters that are written as numbers: they may spell anything.
class AssemblerEscapes {
 public:
  bool are_in(std::string_view line) {
    bool found = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const char c = line[i];
      if (in_string_ && c == '\\' && i + 1 < line.size()) {
        found |= is_of_asm() && std::string_view("01234567xuUN").find(line[i + 1]) != std::string_view::npos;
        ++i;
      } else if (line.substr(i).starts_with("'\"'")) {
        i += 2;  // a character
      } else if (c == '"') {
        in_string_ = !in_string_;
      } else if (!in_string_) {
        see(line, i);
      }
    }
    in_string_ = false;  // none goes on over a line's end
    return found;
  }

 private:
  bool is_of_asm() const { return is_named_ || depth_ > 0; }
  void see(std::string_view line, std::size_t i) {
    if (line.substr(i).starts_with("asm") && depth_ == 0) {
      is_named_ = true;
    } else if (line[i] == '(' && is_of_asm()) {
      is_named_ = false;
      ++depth_;
    } else if (line[i] == ')' && depth_ > 0) {
      --depth_;
    } else if (line[i] == ';' && depth_ == 0) {
      is_named_ = false;
    }
  }

  bool is_named_ = false;  // asm was read, its parenthesis was not
  bool in_string_ = false;
  std::size_t depth_ = 0;
};

constexpr std::string_view kPrecompiled = "#pragma GCC pch_preprocess";

}  // namespace

CcText read_preprocessed(std::string_view text) {
  CcText read;
  read.keyed.reserve(text.size());
  std::unordered_set<std::string> seen;
  AssemblerInput directive;
  AssemblerEscapes escapes;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (auto name = marker_name(line)) {
      if (name->ends_with("//")) {  // the working directory, which -g adds
        read.directory = name->substr(0, name->size() - 2);
        continue;
      }
      if (!is_of_no_file(*name) && seen.insert(*name).second) read.files.push_back(std::move(*name));
    } else {
      read.reads_more |= directive.is_in(line) || escapes.are_in(line) || line.starts_with(kPrecompiled);
    }
    read.keyed.append(line).push_back('\n');
  }
  return read;
}

std::optional<std::vector<std::string>> link_command_in(std::string_view output) {
  std::optional<std::vector<std::string>> link;
  for (std::size_t begin = 0; begin < output.size();) {
    const std::size_t end = std::min(output.find('\n', begin), output.size());
    const std::string_view line = output.substr(begin, end - begin);
    begin = end + 1;
    if (!line.starts_with(' ')) continue;
    auto words = quoted_words(line);
    if (words.empty() || !(words[0].ends_with("/collect2") || words[0] == "collect2")) continue;
    if (link) return std::nullopt;
    link = std::move(words);
  }
  return link;
}

std::optional<CcLink> read_link(const std::vector<std::string>& words) { return LinkReader(words).read(); }

std::optional<std::vector<std::string>> files_of_script(std::string_view text) {
  const auto words = script_words(text);
  std::vector<std::string> files;
  int depth = 0;
  bool of_files = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "(") {
      ++depth;
    } else if (word == ")") {
      if (--depth < 0) return std::nullopt;
    } else if (depth == 0) {
      of_files = word == "GROUP" || word == "INPUT";
      if (!of_files && word != "OUTPUT_FORMAT") return std::nullopt;
    } else if (of_files && word != "AS_NEEDED") {
      if (word.starts_with('-') && !word.starts_with("-l")) return std::nullopt;
      files.push_back(word);
    }
  }
  if (depth != 0 || files.empty()) return std::nullopt;
  return files;
}

}  // namespace jitc::cli
