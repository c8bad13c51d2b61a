// A C compiler's command line as GCC reads it: what it makes of what, and which of its words decide the output. Pure.
//
// Only what is understood for certain is a compile or a link that may be kept; everything else is passed to the
// compiler as it stands.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::cli {

struct CcPlan {
  enum class Kind {
    kPass,            // to the compiler, unchanged
    kCompile,         // one source to an object file (-c)
    kLink,            // objects and libraries to a shared object
    kCompileAndLink,  // one source, with objects and libraries, to a shared object
  };
  Kind kind = Kind::kPass;
  std::string why;     // kPass, for people
  std::string source;  // as it is spelled; kLink: none
  std::string output;  // as it is spelled, or the name that GCC would take

  // Without the compiler's name.
  std::vector<std::string> command;     // all but -o and what makes the dependency file: writes the output alone
  std::vector<std::string> preprocess;  // all but what -E does not need, and -c; the source stands in it
  // What decides the output of a compile beside the preprocessed text and the files that this is made of, in order.
  std::vector<std::string> keyed;
  bool debug = false;            // debug information, which has the directory
  bool for_this_cpu = false;     // -march=native and the like
  bool chooses_colours = false;  // of messages, by an option

  // The file that make reads (-MD, -MMD).
  struct Dependencies {
    std::vector<std::string> options;  // for the preprocessor, -MF and its value left out
    std::string file;
  };
  std::optional<Dependencies> dependencies;
};

// `arguments` have no @file any more (expanded_arguments) and begin behind the compiler's name.
CcPlan plan_of(const std::vector<std::string>& arguments);

// The words of a file of arguments (@file), by GCC's rules of quoting.
std::vector<std::string> words_of(std::string_view text);

// Arguments with each @file replaced by its words. `read` gives a file's text, or nothing: then the word stands for
// itself, as for GCC. Nothing when they nest without end.
std::optional<std::vector<std::string>> expanded_arguments(
    const std::vector<std::string>& arguments,
    const std::function<std::optional<std::string>(const std::string&)>& read);

// Is this the name of something that a compiler takes as input, by its suffix?
bool is_input_name(std::string_view name);
// Of a text, in whatever language?
bool is_source_name(std::string_view name);

}  // namespace jitc::cli
