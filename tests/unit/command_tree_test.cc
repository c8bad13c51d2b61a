// What is made of a command line: its tree, a manual page, completion.
#include "common/command_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "client/cli/completion.h"
#include "common/manual.h"

namespace jitc {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CommandTree : public ::testing::Test {
 protected:
  CommandTree() {
    auto* sort = app.add_subcommand("sort", "put files in order");
    sort->add_option("FILE", files, "what is sorted")->required();
    sort->add_option("-b,--by", by, "order")
        ->check(CLI::IsMember({"age", "name"}))
        ->capture_default_str()
        ->type_name("ORDER");
    sort->add_option("--secret", by, "not for people")->group("");
    sort->footer(common::help_footer("Equal ones stay.\n  a  b", {"tool sort f", "tool sort -b age f g"}));
    app.add_subcommand("run", "another program")->prefix_command();
    app.add_subcommand("hidden", "not for people")->group("");
  }
  CLI::App app{"a tool", "tool"};
  std::vector<std::string> files;
  std::string by = "name";
};

TEST_F(CommandTree, HasWhatTheParserKnows) {
  const auto tree = common::command_tree(app);
  ASSERT_EQ(tree.commands.size(), 2u);
  const auto& sort = tree.commands[0];
  EXPECT_EQ(sort.path, "tool sort");
  EXPECT_EQ(sort.name(), "sort");
  EXPECT_EQ(sort.text, "Equal ones stay.\n  a  b");
  EXPECT_THAT(sort.examples, ElementsAre("tool sort f", "tool sort -b age f g"));
  ASSERT_EQ(sort.arguments.size(), 1u);
  EXPECT_TRUE(sort.arguments[0].is_required);
  EXPECT_TRUE(sort.arguments[0].repeats);
  ASSERT_EQ(sort.options.size(), 2u) << "--help, and no secret";
  EXPECT_THAT(sort.options[1].names, ElementsAre("-b", "--by"));
  EXPECT_EQ(sort.options[1].value, "ORDER");
  EXPECT_THAT(sort.options[1].choices, ElementsAre("age", "name"));
  EXPECT_EQ(sort.options[1].fallback, "name");
  EXPECT_TRUE(tree.commands[1].passes_on);
  EXPECT_THAT(tree.commands[1].examples, IsEmpty());
}

TEST_F(CommandTree, IsPrintedAsRoff) {
  const auto page = common::command_manual(common::command_tree(app), 1, "a tool", {"other(1)"});
  EXPECT_THAT(page, HasSubstr(".SS \\fBtool sort\\fR [\\fIOPTION\\fR...] \\fIFILE\\fR...\n"));
  EXPECT_THAT(page, HasSubstr("\\fB\\-b\\fR, \\fB\\-\\-by\\fR \\fIORDER\\fR\norder\n(default: name)\n"));
  EXPECT_THAT(page, HasSubstr(".SS \\fBtool run\\fR [\\fIARGUMENT\\fR...]\n"));
  EXPECT_THAT(page, HasSubstr(".EX\ntool sort f\ntool sort \\-b age f g\n.EE\n"));
  EXPECT_THAT(page, Not(HasSubstr("not for people")));
}

TEST_F(CommandTree, NothingOfATextIsAnInstructionOfRoff) {
  app.get_subcommand("sort")->footer(".so /etc/passwd\n'\\\"");
  const auto page = common::command_manual(common::command_tree(app), 1, "a tool", {});
  EXPECT_THAT(page, HasSubstr("\n\\&.so /etc/passwd\n"));
  EXPECT_THAT(page, HasSubstr("\n\\&\\(aq\\e\"\n"));
}

TEST_F(CommandTree, OfAnotherProgramsArgumentsFilesAreCompleted) {
  const auto tree = common::command_tree(app);
  EXPECT_THAT(cli::bash_completion(tree), HasSubstr("'tool run') echo 'files'"));
  EXPECT_THAT(cli::bash_completion(tree), HasSubstr("'tool sort:--by') echo 'words age name'"));
  EXPECT_THAT(cli::zsh_completion(tree), HasSubstr("_tool_run() {\n  _files\n}\n"));
}

}  // namespace
}  // namespace jitc
