// jitc man, jitc completion: what is said of this command line elsewhere, made from it.
#include <cstdio>
#include <memory>

#include "client/cli/completion.h"
#include "client/cli/context.h"
#include "common/manual.h"

namespace jitc::cli {
namespace {

int put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

std::string manual(const CLI::App& app, const std::string& page) {
  if (page == "jitc.toml") return common::settings_manual();
  return common::command_manual(common::command_tree(app), 1, "compile C sources once per node and keep the result",
                                {"jitcd(8)", "jitc.toml(5)", "libjitc(3)"});
}

// A subcommand with one word, of which there are few.
void add(CLI::App& app, Action& action, const char* name, const char* help, const char* word,
         std::initializer_list<const char*> words, std::string footer,
         int (*run)(const CLI::App&, const std::string&)) {
  auto given = std::make_shared<std::string>();
  auto* command = app.add_subcommand(name, help);
  command->add_option(word, *given)
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(words.begin(), words.end())))
      ->type_name("");
  command->footer(std::move(footer));
  command->callback([given, run, &app, &action] { action = [given, run, &app] { return run(app, *given); }; });
}

}  // namespace

void add_man(CLI::App& app, Action& action) {
  add(app, action, "man", "print a manual page, as man -l reads it", "PAGE", {"jitc", "jitc.toml"},
      common::help_footer("The daemon prints its own: 'jitcd --man'. Installed pages are read by 'man jitc'.",
                          {"jitc man jitc.toml", "jitc man jitc | man -l -"}),
      [](const CLI::App& root, const std::string& page) { return put(manual(root, page)); });
}

void add_completion(CLI::App& app, Action& action) {
  add(app, action, "completion", "print what makes a shell complete this command's words", "SHELL", {"bash", "zsh"},
      common::help_footer("An installation has both where the shells look for them. For this shell alone:",
                          {"source <(jitc completion bash)", "jitc completion zsh > _jitc"}),
      [](const CLI::App& root, const std::string& shell) {
        const common::CommandHelp program = common::command_tree(root);
        return put(shell == "bash" ? bash_completion(program) : zsh_completion(program));
      });
}

}  // namespace jitc::cli
