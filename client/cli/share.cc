// jitc share: a C text with the common subexpressions of its functions shared.
#include <cstdio>
#include <memory>
#include <optional>

#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/input.h"
#include "client/graph/c_text/share.h"

namespace jitc::cli {
namespace {

constexpr const char* kFooter =
    "Straight-line functions of doubles (declarations, assignments, + - * /, comparisons, ?:, && || !, if and else,\n"
    "calls of math.h and of static helpers in the same file) are computed with every common subexpression once. Each\n"
    "result keeps its 64 bits under the same compiler and flags, as long as those allow neither fast mathematics nor\n"
    "contraction. What is not understood stays as it is: --why says why.\n\n"
    "Array arguments that are const do not overlap the one that a function writes: as PETSc calls them.";

struct Options {
  std::string file;
  std::optional<std::string> output;
  bool with_statistics = false;
  bool with_reasons = false;
};

int run(const Options& options) {
  watch_interrupts();
  auto text = read_input(options.file, Deadline(0));
  if (!text) return report(text.error());
  const graph::SharedText shared = graph::share(*text);
  std::size_t kept = 0;
  for (const auto& function : shared.functions) {
    if (function.is_shared) continue;
    ++kept;
    if (options.with_reasons)
      std::fprintf(stderr, "%s:%s (%s is left as it is)\n", options.file.c_str(), function.reason.c_str(),
                   function.name.c_str());
  }
  if (options.with_statistics)
    std::fprintf(stderr, "%zu bytes become %zu; %zu functions, %zu left as they are; %zu nodes, %zu temporaries\n",
                 text->size(), shared.text.size(), shared.functions.size(), kept, shared.nodes, shared.temporaries);
  const auto written = write_text(options.output, shared.text);
  return written ? 0 : report(written.error());
}

}  // namespace

void add_share(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* share = app.add_subcommand("share", "print a C source with its common subexpressions shared");
  share->footer(common::help_footer(kFooter, {"jitc share kernel.c --stats -o shared.c"}));
  share->add_option("FILE", options->file, "C source; - is standard input")->required();
  share->add_option("-o,--output", options->output, "write to this file instead of standard output")
      ->type_name("OUT.c");
  share->add_flag("--stats", options->with_statistics, "sizes and counts, to standard error");
  share->add_flag("--why", options->with_reasons, "the functions that stay as they are, and why, to standard error");
  share->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
