#include "daemon/worker/compiler_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <vector>

namespace jitc::worker {
namespace {

constexpr std::string_view kSource = "source.c:";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    lines.push_back(line);
  }
  return lines;
}

// "FILE:LINE:COLUMN" and nothing else.
bool is_place(std::string_view text) {
  const std::size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && text.front() != ' ' &&
         text.find_first_not_of("0123456789:", colon) == std::string_view::npos;
}

// A line about a place in a file, or of the excerpt below one ("    3 | x", "      | ^", clang's "        ^~~").
bool shows_source(std::string_view line) {
  const std::size_t mark = line.find_first_not_of(" 0123456789");
  if (mark != std::string_view::npos && std::string_view("|^~").contains(line[mark])) return true;
  return is_place(line.substr(0, line.find(": ")));
}

// What follows the last line that shows a source: words of the source may look like a compiler's.
std::string_view last_words_of(std::string_view text) {
  std::string_view last = text;
  for (const std::string_view line : lines_of(text)) {
    if (shows_source(line)) last = text.substr(static_cast<std::size_t>(line.data() + line.size() - text.data()));
  }
  return last;
}

// "cc1: ...", "/usr/bin/ld: ...", "gcc-12: ...": a part of the compiler speaks for itself. A line about a place in a
// file has the line's number behind the first colon, an excerpt begins with a blank; both hold words of the source.
bool is_from_a_tool(std::string_view line) {
  constexpr std::array<std::string_view, 11> kTools = {"cc1",      "as", "ld",  "ld.bfd", "ld.gold", "ld.lld",
                                                       "collect2", "cc", "gcc", "clang",  "c99"};
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos || line.find(':') != colon) return false;
  std::string_view name = line.substr(0, colon);
  name.remove_prefix(name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/') + 1);
  const auto is_driver = [name](std::string_view driver) {
    const std::size_t at = name.find(driver);
    return at != std::string_view::npos && (at == 0 || name[at - 1] == '-') &&
           (at + driver.size() == name.size() || name[at + driver.size()] == '-');
  };
  return std::ranges::find(kTools, name) != kTools.end() || is_driver("gcc") || is_driver("clang");
}

// What a dying compiler prints without its name before it.
bool is_last_word(std::string_view line) {
  return line.starts_with("virtual memory exhausted: ") || line.starts_with("LLVM ERROR: out of memory") ||
         line.starts_with("terminate called after throwing an instance of 'std::bad_alloc'");
}

std::string first_line_with(std::string_view text, std::initializer_list<std::string_view> marks) {
  for (const std::string_view line : lines_of(text)) {
    if (!is_from_a_tool(line) && !is_last_word(line)) continue;
    for (const std::string_view mark : marks) {
      if (line.find(mark) != std::string_view::npos) return std::string(line);
    }
  }
  return {};
}

bool take_number(std::string_view& text, std::uint32_t& value) {
  const auto [next, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(next - text.data()));
  if (!text.starts_with(':')) return false;
  text.remove_prefix(1);
  return true;
}

bool take_severity(std::string_view text, v1::Diagnostic& diagnostic) {
  struct Word {
    std::string_view word;
    const char* severity;
  };
  constexpr std::array kWords = {Word{"fatal error: ", "error"}, Word{"error: ", "error"}, Word{"warning: ", "warning"},
                                 Word{"note: ", "note"}};
  for (const auto& [word, severity] : kWords) {
    if (!text.starts_with(word)) continue;
    diagnostic.set_severity(severity);
    diagnostic.set_message(std::string(text.substr(word.size())));
    return true;
  }
  return false;
}

// The file's name in the words of gcc, or of clang; empty: the message is about something else.
std::string_view missing_in(std::string_view message) {
  constexpr std::string_view kOfGcc = ": No such file or directory", kOfClang = "' file not found";
  if (message.ends_with(kOfGcc)) return message.substr(0, message.size() - kOfGcc.size());
  if (message.starts_with('\'') && message.ends_with(kOfClang))
    return message.substr(1, message.size() - 1 - kOfClang.size());
  return {};
}

std::optional<v1::Diagnostic> parse(std::string_view line) {
  v1::Diagnostic diagnostic;
  const bool from_linker = line.starts_with("source.c:(") || is_from_a_tool(line);
  const std::size_t undefined = from_linker ? line.find("undefined reference to ") : std::string_view::npos;
  if (undefined != std::string_view::npos) {
    diagnostic.set_severity("error");
    diagnostic.set_message(std::string(line.substr(undefined)));
    return diagnostic;
  }
  if (!line.starts_with(kSource)) return std::nullopt;
  line.remove_prefix(kSource.size());
  std::uint32_t number = 0;
  if (!take_number(line, number)) return std::nullopt;
  diagnostic.set_line(number);
  if (take_number(line, number)) diagnostic.set_column(number);
  if (!line.starts_with(' ') || !take_severity(line.substr(1), diagnostic)) return std::nullopt;
  return diagnostic;
}

}  // namespace

google::protobuf::RepeatedPtrField<v1::Diagnostic> diagnostics_in(std::string_view text) {
  google::protobuf::RepeatedPtrField<v1::Diagnostic> diagnostics;
  bool excerpt = false;
  for (const std::string_view line : lines_of(text)) {
    if (auto diagnostic = parse(line)) {
      *diagnostics.Add() = std::move(*diagnostic);
      excerpt = true;
    } else if (excerpt && (line.starts_with(' ') || line.starts_with('\t'))) {
      std::string& shown = *diagnostics.rbegin()->mutable_excerpt();
      shown += (shown.empty() ? "" : "\n") + std::string(line);
    } else {
      excerpt = false;
    }
  }
  return diagnostics;
}

std::string memory_complaint_in(std::string_view text) {
  return first_line_with(last_words_of(text),
                         {"virtual memory exhausted", "out of memory allocating", "annot allocate memory",
                          "std::bad_alloc", "LLVM ERROR: out of memory", "memory exhausted"});
}

std::string dead_program_in(std::string_view text) {
  return first_line_with(last_words_of(text), {"signal terminated program", "command failed due to signal"});
}

std::string missing_file_in(std::string_view text) {
  constexpr std::string_view kFatal = ": fatal error: ";
  for (const std::string_view line : lines_of(text)) {
    const std::size_t fatal = line.find(kFatal);
    if (fatal == std::string_view::npos || !is_place(line.substr(0, fatal))) continue;
    if (const std::string_view file = missing_in(line.substr(fatal + kFatal.size())); !file.empty())
      return std::string(file);
  }
  return {};
}

std::string error_in_a_file(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    const std::string_view place = line.substr(0, line.find(": "));
    const std::string_view message = line.substr(place.size());
    if (!message.starts_with(": error: ") && !message.starts_with(": fatal error: ")) continue;
    if (is_place(place) || place == "<command-line>") return std::string(line);
  }
  return {};
}

std::string unknown_option_in(std::string_view text) {
  return first_line_with(text, {"unrecognized command-line option", "unrecognized command line option",
                                "unknown argument", "unrecognized argument in option", "bad value"});
}

}  // namespace jitc::worker
