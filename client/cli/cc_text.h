// What a C compiler prints, read: preprocessed text with its line markers, and the commands that a driver would run.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::cli {

struct CcText {
  std::vector<std::string> files;  // that the markers name, each once, as spelled
  std::string keyed;               // the text without the marker of the working directory
  std::string directory;           // of that marker, which is there with -g
  bool reads_more = false;         // files that no marker names: an assembler's .include or .incbin may stand in it, or
                                   // a precompiled header has been read
};
CcText read_preprocessed(std::string_view text);

// The link that the output of `driver -###` shows: the linker's words, its program first. Nothing when there is none,
// or more than one.
std::optional<std::vector<std::string>> link_command_in(std::string_view output);

// What the linker's words mean.
struct CcLink {
  struct Item {
    enum class Kind { kText, kFile, kLibrary } kind;
    std::string text;  // a word; a path; a library as behind -l
  };
  std::vector<Item> items;               // in order, but for the output and the directories
  std::vector<std::string> directories;  // where libraries are looked for, in order
};
// Nothing for a link of which something is not understood, or whose result may depend on more files than it names.
std::optional<CcLink> read_link(const std::vector<std::string>& words);

// The files that a linker script of a library names (GROUP, INPUT, AS_NEEDED): paths, and -lNAME. Nothing for
// any other script.
std::optional<std::vector<std::string>> files_of_script(std::string_view text);

}  // namespace jitc::cli
