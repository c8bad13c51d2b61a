#include "common/manual.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <string_view>

#include "common/identity.h"
#include "common/settings.h"
#include "common/text.h"

namespace jitc::common {
namespace {

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

// Text as it shall be shown: nothing of it is an instruction.
std::string shown(std::string_view text) {
  std::string out = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '\'') {
      out += "\\(aq";
    } else if (c == '`') {
      out += "\\(ga";
    } else if (c == '~') {
      out += "\\(ti";
    } else if (c == '^') {
      out += "\\(ha";
    } else {
      out += c;
    }
  }
  return out;
}

// The same in filled text, in lines as roff wants them: of 80 bytes at most.
std::string filled(std::string_view text) {
  constexpr std::size_t kMostBytes = 79;  // and a full stop
  std::string out, line;
  for (const auto word : split(text, ' ')) {
    const std::string longer = line.empty() ? shown(word) : line + " " + shown(word);
    if (longer.size() <= kMostBytes || line.empty()) {
      line = longer;
    } else {
      out += line + "\n";
      line = shown(word);
    }
  }
  return out + line;
}

std::string bold(std::string_view text) { return "\\fB" + shown(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + shown(text) + "\\fR"; }

// The day of SOURCE_DATE_EPOCH, which those set who build the same bytes again, else today.
std::string day() {
  const char* epoch = std::getenv("SOURCE_DATE_EPOCH");
  const time_t now = epoch != nullptr ? static_cast<time_t>(std::strtoll(epoch, nullptr, 10)) : ::time(nullptr);
  tm date{};
  std::array<char, 16> text{};
  if (::gmtime_r(&now, &date) == nullptr || std::strftime(text.data(), text.size(), "%Y-%m-%d", &date) == 0) return "";
  return text.data();
}

std::string head(std::string_view name, int section, std::string_view summary) {
  return ".\\\" Made by the program itself.\n.TH " + upper(std::string(name)) + " " + std::to_string(section) + " " +
         day() + " \"jitc " + build_version() + "\" \"jitc\"\n.SH NAME\n" + shown(name) + " \\- " + shown(summary) +
         "\n";
}

std::string see_also(const std::vector<std::string>& pages) {
  std::string text = ".SH SEE ALSO\n";
  for (const auto& page : pages) {
    const auto open = page.find('(');
    text += ".BR " + shown(page.substr(0, open)) + " " + page.substr(open) + (&page == &pages.back() ? "\n" : " ,\n");
  }
  return text;
}

// Paragraphs are filled, as wide as the reader's terminal; lines that begin with blanks stand as they are.
std::string paragraphs(std::string_view text) {
  std::string out;
  bool stands = false, is_new = false;
  for (const auto line : split(text, '\n')) {
    if (line.starts_with(' ') != stands) {
      stands = !stands;
      out += stands ? ".PP\n.EX\n" : ".EE\n";
      is_new = !stands;
    }
    if (line.empty()) {
      is_new = true;
      continue;
    }
    if (is_new) out += ".PP\n";
    is_new = false;
    out += (stands ? shown(line) : filled(line)) + "\n";
  }
  return stands ? out + ".EE\n" : out;
}

std::string examples(const std::vector<std::string>& lines) {
  std::string out = ".EX\n";
  for (const auto& line : lines) out += shown(line) + "\n";
  return out + ".EE\n";
}

std::string value_of(const CommandOption& option) {
  if (option.value.empty()) return {};
  const std::string value =
      option.value.starts_with('{') ? shown(option.value.substr(1, option.value.size() - 2)) : italic(option.value);
  const std::string text = option.value.starts_with('{') ? "{" + value + "}" : value;
  return option.value_is_optional ? " [" + text + "]" : " " + text;
}

std::string item(const CommandOption& option) {
  std::string out = ".TP\n";
  for (const auto& name : option.names) out += (&name == &option.names.front() ? "" : ", ") + bold(name);
  out += value_of(option) + "\n" + filled(option.help);
  if (!option.fallback.empty()) out += "\n(default: " + shown(option.fallback) + ")";
  return out + "\n";
}

std::string argument_text(const CommandOption& argument) {
  std::string text = italic(argument.names.front());
  if (argument.repeats) text += "...";
  return argument.is_required ? text : "[" + text + "]";
}

std::string synopsis(const CommandHelp& command) {
  std::string text = bold(command.path);
  if (command.passes_on) return text + " [" + italic("ARGUMENT") + "...]";
  if (!command.options.empty()) text += " [" + italic("OPTION") + "...]";
  for (const auto& argument : command.arguments) text += " " + argument_text(argument);
  if (!command.commands.empty()) text += " " + italic("COMMAND") + " ...";
  return text;
}

std::string options(const CommandHelp& command) {
  std::string out;
  for (const auto& argument : command.arguments) {
    out += ".TP\n" + italic(argument.names.front()) + "\n" + filled(argument.help) + "\n";
  }
  for (const auto& option : command.options)
    if (option.names.back() != "--help") out += item(option);
  return out;
}

std::string subsection(const CommandHelp& command) {
  std::string help = command.help;
  if (!help.empty()) help[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(help[0])));
  std::string out = ".SS " + synopsis(command) + "\n" + filled(help) + ".\n" + options(command);
  if (!command.text.empty()) out += ".PP\n" + paragraphs(command.text);
  if (!command.examples.empty()) out += ".PP\nExamples:\n.PP\n" + examples(command.examples);
  for (const auto& sub : command.commands) out += subsection(sub);
  return out;
}

constexpr std::string_view kFiles =
    "jitc reads its settings from files in TOML, of 64 KiB at most, each a list of NAME = VALUE. A value is a text in "
    "quotes;\na number, true and false, and for lists of paths an array of texts are understood as well.\n"
    "A setting comes from the first of these that has it: a flag of the command line, its environment variable, the "
    "job's\nfile (the one that JITC_JOB_FILE names), the user's, the site's, then its default. An empty variable is an "
    "unset one.\n'jitc config' shows each setting's value and where it came from.";

}  // namespace

std::string command_manual(const CommandHelp& program, int section, const std::string& summary,
                           const std::vector<std::string>& see) {
  std::string out = head(program.path, section, summary) + ".SH SYNOPSIS\n" + synopsis(program) + "\n" +
                    ".SH DESCRIPTION\n" + shown(program.help) + "\n";
  if (!program.text.empty()) out += ".PP\n" + paragraphs(program.text);
  if (const auto all = options(program); !all.empty()) out += ".SH OPTIONS\n" + all;
  if (!program.commands.empty()) out += ".SH COMMANDS\n";
  for (const auto& command : program.commands) out += subsection(command);
  if (!program.examples.empty()) out += ".SH EXAMPLES\n" + examples(program.examples);
  return out + see_also(see);
}

std::string settings_manual() {
  std::string out =
      head("jitc.toml", 5, "settings of jitc and jitcd") + ".SH DESCRIPTION\n" + paragraphs(kFiles) + ".SH SETTINGS\n";
  for (const auto& info : settings_table()) {
    const std::string value = value_name(info);
    out += ".TP\n" + bold(info.name) + " = " + (value.starts_with('{') ? shown(value) : italic(value)) + "\n" +
           filled(info.help) + ".\nVariable: " + bold(info.environment);
    if (!info.flag.empty()) out += "; flag: " + bold(info.flag);
    if (!info.fallback.empty()) out += ";\n" + filled("default: " + std::string(info.fallback));
    out += ".\n";
  }
  return out + ".SH FILES\n.TP\n" + italic("/etc/jitc/jitc.toml") + "\nthe site's\n.TP\n" +
         italic("~/.config/jitc/jitc.toml") + "\nthe user's; below XDG_CONFIG_HOME where that is set\n" +
         ".SH EXAMPLES\n" +
         examples({"store = \"/scratch/me/jitc\"", "store_readonly = [\"/site/jitc\"]", "memory_budget = \"4G\"",
                   "max_compilers = 2"}) +
         see_also({"jitc(1)", "jitcd(8)"});
}

}  // namespace jitc::common
