// A program's command line as its parser knows it, for those who describe it: manual pages, completion.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace jitc::common {

struct CommandOption {
  std::vector<std::string> names;    // "-o", "--output"; of a positional argument its one name: "FILE"
  std::string value;                 // "FILE", "{0,1,auto}"; empty: it takes none
  std::vector<std::string> choices;  // the values that are allowed, where these are few
  bool value_is_optional = false;
  bool is_required = false;
  bool repeats = false;
  std::string fallback;
  std::string help;
};

struct CommandHelp {
  std::string path;  // "jitc cache ls"
  std::string help;  // one line
  std::string text;  // what stands below its options, without the examples
  std::vector<std::string> examples;
  std::vector<CommandOption> options, arguments;
  std::vector<CommandHelp> commands;
  bool passes_on = false;  // its arguments are another program's

  std::string name() const { return path.substr(path.rfind(' ') + 1); }
};

// What has the group "" is hidden, and left out.
CommandHelp command_tree(const CLI::App& app);

// The end of a help text: what is to be said, then commands that can be typed. command_tree() takes them apart again.
std::string help_footer(std::string text, const std::vector<std::string>& examples);

}  // namespace jitc::common
