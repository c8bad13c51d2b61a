// jitc lower: a problem's functions and their derivatives as C text. No daemon, no store.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <optional>
#include <string_view>

#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/graph/emit.h"
#include "client/graph/import_json.h"
#include "client/graph/problem.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

constexpr const char* kFooter =
    "The C text goes to standard output, or to the file of -o. It defines every function that the problem lists under\n"
    "its own name, those that are identically zero too, and includes math.h only.\n\n"
    "Exit codes:\n"
    "  0  done\n"
    "  1  the problem is wrong: malformed, out of its layout, without a derivative\n"
    "  2  wrong usage; FILE, -o or standard output cannot be used; the text cannot be printed: trees above 64 MiB, an\n"
    "     opaque function with a name that the text needs";

struct Options {
  std::string file;
  std::string blocks = "all";
  std::optional<std::string> ties;
  std::optional<double> guard;
  std::string types = "petsc";
  std::uint32_t int_bits = 32;
  std::optional<std::string> output;
  bool stats = false;
  bool manifest = false;
  SettingFlags settings;
};

Result<std::string> read_problem(const std::string& file) {
  if (file == "-") {
    std::string text{std::istreambuf_iterator<char>(std::cin), {}};
    if (std::cin.bad()) return fail(ErrorKind::kUsage, "cannot be read", "standard input");
    return text;
  }
  auto text = common::read_file(file);
  if (!text) text.error().kind = ErrorKind::kUsage;
  return text;
}

// Leaves the blocks that --blocks names: all, none, or names with commas between them.
Result<void> select_blocks(graph::Problem& problem, std::string_view wanted) {
  if (wanted == "all") return {};
  std::vector<graph::Block> chosen;
  if (wanted == "none") wanted = "";
  while (!wanted.empty()) {
    const auto comma = wanted.find(',');
    const auto name = wanted.substr(0, comma);
    wanted = comma == std::string_view::npos ? "" : wanted.substr(comma + 1);
    const auto is_it = [&](const graph::Block& block) { return block.name == name; };
    if (std::ranges::any_of(chosen, is_it)) continue;
    const auto found = std::ranges::find_if(problem.blocks, is_it);
    if (found == problem.blocks.end())
      return fail(ErrorKind::kUsage, "the problem has no block '" + std::string(name) + "'", "--blocks");
    chosen.push_back(*found);
  }
  problem.blocks = std::move(chosen);
  return {};
}

graph::Sharing sharing_of(std::string_view cse) {
  if (cse == "0") return graph::Sharing::kTrees;
  return cse == "1" ? graph::Sharing::kShared : graph::Sharing::kAuto;
}

graph::EmitOptions emit_options(const Options& options, const graph::Problem& problem, std::string_view cse) {
  graph::EmitOptions emit;
  emit.sharing = sharing_of(cse);
  emit.types = options.types == "plain" ? graph::Types::kPlain : graph::Types::kPetsc;
  emit.int_bits = options.int_bits;
  emit.dim = problem.dim;
  return emit;
}

void print_statistics(const graph::EmitStatistics& statistics, std::size_t functions, std::size_t bytes) {
  std::fprintf(stderr, "functions %zu, nodes %zu, temporaries %zu, tree nodes %zu, bytes %zu\n", functions,
               statistics.nodes, statistics.temporaries, statistics.tree_nodes, bytes);
}

Result<std::string> lower(const Options& options, const Context& context) {
  const auto text = read_problem(options.file);
  if (!text) return std::unexpected(text.error());
  auto problem = graph::import_json(*text);
  if (!problem) return std::unexpected(std::move(problem.error()));
  if (options.ties) problem->ties = *options.ties == "first" ? graph::Ties::kFirst : graph::Ties::kHalf;
  if (options.guard) problem->guard = *options.guard;
  if (auto selected = select_blocks(*problem, options.blocks); !selected)
    return std::unexpected(std::move(selected.error()));
  if (options.manifest) return graph::constants_manifest(*problem) + "\n";
  const auto functions = graph::lower(*problem);
  if (!functions) return std::unexpected(functions.error());
  graph::EmitStatistics statistics;
  auto code = graph::emit(problem->graph, *functions, emit_options(options, *problem, context.settings.text("cse")),
                          &statistics);
  if (code && options.stats) print_statistics(statistics, functions->size(), code->size());
  return code;
}

int run(const Options& options) {
  if (options.guard && !(std::isfinite(*options.guard) && *options.guard >= 0.0))
    return report(fail(ErrorKind::kUsage, "is no finite number from 0 on", "--guard").error());
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  if (options.output)
    if (auto checked = check_copy(*options.output); !checked) return report(checked.error());
  const auto text = lower(options, *context);
  if (!text) return report(text.error());
  const auto written = write_text(options.output, *text);
  return written ? 0 : report(written.error());
}

}  // namespace

void add_lower(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* lower = app.add_subcommand("lower", "print a problem's functions and Jacobian blocks as C");
  lower->footer(common::help_footer(
      kFooter, {"jitc lower problem.json -o problem.c", "jitc lower --blocks none --stats problem.json"}));
  lower->add_option("FILE", options->file, "a problem (docs/problem_format.md); - is standard input")->required();
  options->settings.add(*lower, {"cse"});
  lower->add_option("--blocks", options->blocks, "Jacobian blocks to print: all, none, or names with , between them")
      ->capture_default_str()
      ->type_name("NAMES");
  lower->add_option("--ties", options->ties, "derivative of max and min where arguments tie, instead of the problem's")
      ->check(CLI::IsMember({"half", "first"}))
      ->type_name("");
  lower
      ->add_option("--guard", options->guard,
                   "number added to the bases of half-integer powers before Newton derivatives are taken; 0: none")
      ->type_name("X");
  lower->add_option("--types", options->types, "names of types in the text: PETSc's, or int and double")
      ->check(CLI::IsMember({"petsc", "plain"}))
      ->capture_default_str()
      ->type_name("");
  lower->add_option("--int", options->int_bits, "bits of an integer argument (PetscInt)")
      ->check(CLI::IsMember({32, 64}))
      ->capture_default_str()
      ->type_name("");
  lower->add_option("-o,--output", options->output, "write the text to this file")->type_name("OUT.c");
  lower->add_flag("--stats", options->stats, "say on standard error how large it is");
  lower->add_flag("--manifest", options->manifest, "print the slots of constants[] as JSON, and no C");
  lower->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
