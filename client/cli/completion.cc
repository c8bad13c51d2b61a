#include "client/cli/completion.h"

#include <algorithm>
#include <string_view>

namespace jitc::cli {
namespace {

using common::CommandHelp;
using common::CommandOption;

// What stands for a job of the daemon, or for its key.
constexpr std::string_view kJob = "ID";

// One that runs no longer than a second answers, or nobody: a shell must not wait.
constexpr const char* kJobs =
    "JITC_TIMEOUT=1s timeout 1 jitc jobs --json 2>/dev/null |\n"
    "    grep -o '\"flight\":[0-9]*' | cut -d: -f2";

bool is_directory(const CommandOption& option) { return option.value == "DIR"; }
bool is_file(std::string_view name) {
  return name.starts_with("FILE") || name == "PLAN" || name == "PATHS" || name == "CAPSULE" || name.starts_with("OUT");
}

std::string joined(const std::vector<std::string>& parts, std::string_view between = " ") {
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : std::string(between)) + part;
  return text;
}

std::vector<const CommandHelp*> flattened(const CommandHelp& command) {
  std::vector<const CommandHelp*> all = {&command};
  for (const auto& sub : command.commands) {
    const auto below = flattened(sub);
    all.insert(all.end(), below.begin(), below.end());
  }
  return all;
}

// ---- bash -----------------------------------------------------------------------------------------------------------

std::string names_of_commands(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const auto& sub : command.commands) names.push_back(sub.name());
  return joined(names);
}

std::string names_of_options(const CommandHelp& command) {
  std::vector<std::string> names;
  for (const auto& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return joined(names);
}

// A case for each option with a value: how that is completed.
std::string bash_values(const CommandHelp& command) {
  std::string out;
  for (const auto& option : command.options) {
    if (option.value.empty() || option.value_is_optional) continue;
    const std::string kind = !option.choices.empty() ? "words " + joined(option.choices)
                             : is_directory(option)  ? "directories"
                             : is_file(option.value) ? "files"
                                                     : "nothing";
    for (const auto& name : option.names) out += "    '" + command.path + ":" + name + "') echo '" + kind + "' ;;\n";
  }
  return out;
}

std::string bash_arguments(const CommandHelp& command) {
  if (command.passes_on) return "files";
  for (const auto& argument : command.arguments) {
    if (argument.names.front() == kJob) return "jobs";
    if (is_file(argument.names.front()) || is_file(argument.value)) return "files";
    if (!argument.choices.empty()) return "words " + joined(argument.choices);
  }
  return "nothing";
}

constexpr const char* kBashEnd = R"bash(
_@() {
  local cur prev word path='@' kind i
  COMPREPLY=()
  cur=${COMP_WORDS[COMP_CWORD]}
  prev=${COMP_WORDS[COMP_CWORD-1]}
  # --name=value comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]] && ((COMP_CWORD >= 2)); then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    [[ -n $word && " $(_@_commands "$path") " == *" $word "* ]] && path+=" $word"
  done
  kind=$(_@_value "$path:$prev")
  if [[ -z $kind && $cur == -* ]]; then
    kind="words $(_@_options "$path")"
  elif [[ -z $kind && -n $(_@_commands "$path") ]]; then
    kind="words $(_@_commands "$path")"
  elif [[ -z $kind ]]; then
    kind=$(_@_argument "$path")
  fi
  case $kind in
    words\ *) kind=${kind#words } ;;
    jobs) kind=$(_@_jobs) ;;
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$cur")
      return ;;
    directories)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$cur")
      return ;;
    *) return ;;
  esac
  mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$cur")
}
complete -F _@ @
)bash";

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// ---- zsh ------------------------------------------------------------------------------------------------------------

// Inside '...' of an argument of _arguments, where [ ] and : mean something.
std::string zsh_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += std::string("\\") + c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const std::vector<std::string>& choices, bool directory, bool file) {
  if (!choices.empty()) return "(" + joined(choices) + ")";
  return directory ? "_files -/" : file ? "_files" : "";
}

// "--name=VALUE" and "--name VALUE", "-nVALUE" and "-n VALUE".
std::string zsh_name(const std::string& name, bool has_value) {
  return name + (!has_value ? "" : name.starts_with("--") ? "=" : "+");
}

std::string zsh_option(const CommandOption& option) {
  std::vector<std::string> names;
  for (const auto& name : option.names) names.push_back(zsh_name(name, !option.value.empty()));
  std::string spec = "'*" + (names.size() > 1 ? "'{" + joined(names, ",") + "}'" : names.front());
  spec += "[" + zsh_quoted(option.help) + "]";
  if (!option.value.empty())
    spec += (option.value_is_optional ? "::" : ":") + zsh_quoted(option.choices.empty() ? option.value : "value") +
            ":" + zsh_action(option.choices, is_directory(option), is_file(option.value));
  return spec + "'";
}

std::string zsh_function(const CommandHelp& command) {
  return "_" + replaced(replaced(command.path, " ", "_"), "-", "_");
}

std::string zsh_case(const CommandHelp& command) {
  std::string out = zsh_function(command) + "() {\n";
  if (command.passes_on) return out + "  _files\n}\n";
  out += "  _arguments -s";
  for (const auto& option : command.options) out += " \\\n    " + zsh_option(option);
  for (const auto& argument : command.arguments) {
    const std::string& name = argument.names.front();
    const std::string action =
        name == kJob ? "_jitc_jobs" : zsh_action(argument.choices, false, is_file(name) || is_file(argument.value));
    out += " \\\n    '" + std::string(argument.repeats ? "*" : "") + ":" + zsh_quoted(name) + ":" + action + "'";
  }
  if (!command.commands.empty()) {
    out += " \\\n    ': :->command' '*:: :->rest'\n  case $state in\n    command)\n      local -a commands=(";
    for (const auto& sub : command.commands)
      out += "\n        '" + zsh_quoted(sub.name()) + ":" + zsh_quoted(sub.help) + "'";
    out += ")\n      _describe command commands ;;\n    rest)\n      case $words[1] in\n";
    for (const auto& sub : command.commands) out += "        " + sub.name() + ") " + zsh_function(sub) + " ;;\n";
    return out + "      esac ;;\n  esac\n}\n";
  }
  return out + "\n}\n";
}

}  // namespace

std::string bash_completion(const CommandHelp& program) {
  const std::string name = program.path;
  std::string commands, options, values, arguments;
  for (const CommandHelp* command : flattened(program)) {
    if (!command->commands.empty())
      commands += "    '" + command->path + "') echo '" + names_of_commands(*command) + "' ;;\n";
    options += "    '" + command->path + "') echo '" + names_of_options(*command) + "' ;;\n";
    values += bash_values(*command);
    if (command->commands.empty())
      arguments += "    '" + command->path + "') echo '" + bash_arguments(*command) + "' ;;\n";
  }
  const auto function = [&](const char* what, const std::string& cases) {
    return "_" + name + "_" + what + "() {\n  case $1 in\n" + cases + "  esac\n}\n";
  };
  return "# Completion of " + name + " in bash; made by '" + name + " completion bash'.\n" +
         function("commands", commands) + function("options", options) + function("value", values) +
         function("argument", arguments) + "_" + name + "_jobs() {\n  " + kJobs + "\n}\n" +
         replaced(kBashEnd, "@", name);
}

std::string zsh_completion(const CommandHelp& program) {
  std::string out = "#compdef " + program.path + "\n# Made by '" + program.path + " completion zsh'.\n\n_" +
                    program.path + "_jobs() {\n  local -a jobs=(${(f)\"$(" + kJobs + ")\"})\n  compadd -a jobs\n}\n\n";
  for (const CommandHelp* command : flattened(program)) {
    std::string text = zsh_case(*command);
    if (!command->commands.empty())
      text = replaced(text, "() {\n", "() {\n  local curcontext=$curcontext state line\n");
    if (!command->commands.empty()) text = replaced(text, "_arguments -s", "_arguments -C -s");
    out += text + "\n";
  }
  return out + zsh_function(program) + " \"$@\"\n";
}

}  // namespace jitc::cli
