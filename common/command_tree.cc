#include "common/command_tree.h"

#include <CLI/CLI.hpp>
#include <string_view>

#include "common/text.h"

namespace jitc::common {
namespace {

constexpr std::string_view kExamples = "Examples:\n";

// A type's name is followed by what its checks say of themselves: "ORDER:{age,name}", "N:UINT in [1 - 64]".
void take_type(std::string_view type, CommandOption& option) {
  const auto open = type.find('{'), close = type.find('}', open);
  if (close != type.npos)
    for (const auto choice : split(type.substr(open + 1, close - open - 1), ',')) option.choices.emplace_back(choice);
  option.value = type.starts_with('{') ? type.substr(0, close + 1) : type.substr(0, type.find(':'));
  if (option.value.empty() && close != type.npos) option.value = type.substr(open, close + 1 - open);
}

CommandOption described(const CLI::Option& given) {
  CommandOption option;
  for (const auto& name : given.get_snames()) option.names.push_back("-" + name);
  for (const auto& name : given.get_lnames()) option.names.push_back("--" + name);
  if (option.names.empty()) option.names.push_back(given.get_name(true));
  if (given.get_items_expected_max() > 0) take_type(given.get_type_name(), option);
  option.value_is_optional = given.get_items_expected_max() > 0 && given.get_items_expected_min() == 0;
  option.is_required = given.get_required();
  option.repeats = given.get_expected_max() > 1;
  option.fallback = given.get_default_str();
  option.help = given.get_description();
  return option;
}

void take_footer(std::string footer, CommandHelp& command) {
  const auto begin = footer.find(kExamples);
  if (begin != footer.npos) {
    for (std::string_view line : split(std::string_view(footer).substr(begin + kExamples.size()), '\n'))
      if (const auto first = line.find_first_not_of(' '); first != line.npos)
        command.examples.emplace_back(line.substr(first));
    footer.resize(begin);
  }
  footer.resize(footer.find_last_not_of('\n') + 1);
  command.text = std::move(footer);
}

CommandHelp described(const CLI::App& app, const std::string& parents) {
  CommandHelp command;
  command.path = parents + app.get_name();
  command.help = app.get_description();
  command.passes_on = app.get_prefix_command() || app.get_allow_extras();
  take_footer(app.get_footer(), command);
  for (const CLI::Option* option : app.get_options([](const CLI::Option* one) { return !one->get_group().empty(); }))
    (option->nonpositional() ? command.options : command.arguments).push_back(described(*option));
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); }))
    command.commands.push_back(described(*sub, command.path + " "));
  return command;
}

}  // namespace

CommandHelp command_tree(const CLI::App& app) { return described(app, {}); }

std::string help_footer(std::string text, const std::vector<std::string>& examples) {
  if (!text.empty()) text += "\n\n";
  text += kExamples;
  for (const auto& example : examples) text += "  " + example + "\n";
  text.pop_back();
  return text;
}

}  // namespace jitc::common
