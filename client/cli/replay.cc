// jitc replay: a compile that failed, done again from its capsule.
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "client/cli/ask.h"
#include "client/cli/compile.h"
#include "client/cli/context.h"
#include "client/cli/copy.h"
#include "client/cli/json_text.h"
#include "client/cli/replay_text.h"
#include "common/capsule.h"
#include "common/files.h"
#include "common/json.h"
#include "common/text.h"

namespace jitc::cli {
namespace {

using common::Result;

constexpr const char* kFooter =
    "A compile that fails leaves a capsule, and its error names it. A capsule can be copied, edited (its member\n"
    "request.origin, or request.code where that is not empty, is the C text) and compiled anywhere. The store is not\n"
    "looked into; a daemon is started when none runs. Limits and environment are those of the daemon, not of the\n"
    "record. The last line on standard output says what came of it.\n"
    "Exit codes: 0 it compiles here; the same failure and another one: that failure's code, as for 'jitc submit';\n"
    "2 the file is no capsule, 3 it is of a later jitc.";

struct Options {
  std::string file;
  std::string keep;
  bool json = false;
  double timeout = 0;
  SettingFlags settings;
};

// ---- --keep --------------------------------------------------------------------------------------------------------

constexpr const char* kNameAnotherDirectory = "name another directory with --keep";

Result<void> write_file(const std::filesystem::path& path, std::string_view text) {
  constexpr unsigned kTextMode = 0666;
  std::error_code ignored;  // the write says it
  std::filesystem::create_directories(path.parent_path(), ignored);
  return write_copy(path.string(), text, Deadline(0), kTextMode, kNameAnotherDirectory);
}

// Can all of them be files of one directory?
Result<void> check_names(const std::vector<common::Header>& headers) {
  std::set<std::filesystem::path> files;
  const auto collide = [](const std::filesystem::path& name) {
    return common::fail(common::ErrorKind::kUsage, "another header has its name, or the name of one of its directories",
                        "header " + name.string(), "replay the capsule without --keep");
  };
  for (const auto& header : headers)
    if (const auto name = std::filesystem::path(header.name).lexically_normal(); !files.insert(name).second)
      return collide(name);
  for (const auto& name : files)
    for (auto above = name.parent_path(); !above.empty(); above = above.parent_path())
      if (files.contains(above)) return collide(above);
  return {};
}

std::string lines_of(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += word + "\n";
  return text;
}

// What the compiler got, file by file, for those who go on by hand.
Result<void> keep(const common::Capsule& capsule, const std::filesystem::path& folder) {
  const auto& request = capsule.request;
  if (auto checked = check_names(request.headers); !checked) return checked;
  auto written = write_file(folder / "source.c", request.text());
  if (written && !request.code.empty()) written = write_file(folder / "origin.c", request.origin);
  for (const auto& header : request.headers)
    if (written) written = write_file(folder / "headers" / header.name, header.text);
  if (written) written = write_file(folder / "command.txt", lines_of(capsule.command));
  if (written) written = write_file(folder / "environment.txt", lines_of(capsule.environment));
  return written;
}

// ---- what is printed -----------------------------------------------------------------------------------------------

std::string recorded_line(const common::Capsule& capsule) {
  std::string line = "recorded " + capsule.created + " on " + capsule.host + ": " +
                     std::string(common::name_of(capsule.error.kind)) + ": " + capsule.error.message;
  if (capsule.memory_bytes > 0)
    line += "; limit " + common::mebibytes(capsule.memory_bytes) + ", predicted " +
            common::mebibytes(capsule.predicted_bytes) + ", peak " + common::mebibytes(capsule.peak_bytes);
  return line;
}

struct Changes {
  std::vector<Change> what;    // is compiled, by whom, for what
  std::vector<Change> around;  // limits and variables
};

std::vector<Change> changes_here(const Context& context, const common::Capsule& capsule,
                                 const common::Request& request) {
  const auto identity = common::read_identity(context.runtime_dir);
  if (!identity) return {};
  const auto resolved = common::resolve(request, *identity);
  return changes_since(capsule, *identity, resolved ? std::optional(*resolved) : std::nullopt);
}

// None where no daemon answers, or one that does not say.
std::vector<Change> changes_around_here(const Context& context, const common::Capsule& capsule) {
  constexpr double kPatience = 5;
  const auto answer = ask(context, "hello", kPatience);
  const auto hello = answer ? common::parse_json(*answer) : nlohmann::json();
  if (!hello.is_object() || hello.value("cpu_seconds", 0U) == 0) return {};
  return changes_around(capsule, {.cpu_seconds = hello.value("cpu_seconds", 0U),
                                  .compilers = hello.value("max_compilers", 0U),
                                  .budget_bytes = hello.value("memory_budget_bytes", std::uint64_t{0}),
                                  .environment = hello.value("environment", std::vector<std::string>())});
}

void print_text(const common::Capsule& capsule, const Outcome& outcome, Replayed replayed, const Changes& changes) {
  say("jitc: " + shown_name(recorded_line(capsule)) + "\n");
  const auto list = [](const std::vector<Change>& some, const char* remark) {
    for (const auto& change : some)
      say("jitc: another " + change.what + ": recorded " + shown_name(change.recorded) + ", here " +
          shown_name(change.here) + remark + "\n");
  };
  list(changes.what, "");
  list(changes.around, " (what is recorded is not applied)");
  for (const auto& rung : outcome.rungs) say("jitc: note: " + rung + "\n");
  if (outcome.error) say(common::to_text(*outcome.error, shown_name(capsule.request.name)));
  std::printf("%s\n", words_of(replayed));
}

void print_json(const common::Capsule& capsule, const Outcome& outcome, Replayed replayed, const Changes& changes) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const auto* some : {&changes.what, &changes.around})
    for (const auto& change : *some)
      list.push_back({{"what", change.what}, {"recorded", change.recorded}, {"here", change.here}});
  const Json object = {{"result", name_of(replayed)},
                       {"recorded", Json::parse(common::to_json(capsule.error))},
                       {"here", Json::parse(to_json(outcome))},
                       {"changes", std::move(list)}};
  std::printf("%s\n", one_line(object).c_str());
}

// ---- the command ---------------------------------------------------------------------------------------------------

// As it was compiled, but for what the options say otherwise. On another CPU the level stays the recorded one.
common::Request request_of(const common::Capsule& capsule, const Context& context) {
  common::Request request = capsule.request;
  if (context.settings.value("cc").origin == "--cc") request.compiler = context.settings.text("cc");
  if (request.isa_wish == "common" && request.isa_level.empty()) request.isa_level = capsule.target.isa;
  request.no_cache = true;
  request.no_capsule = true;  // there is one, which must not make room for it
  return request;
}

int run(const Options& options) {
  const Deadline deadline(options.timeout);
  watch_interrupts();
  const auto context = Context::load(options.settings);
  if (!context) return report(context.error());
  const auto capsule = common::read_capsule(options.file);
  if (!capsule) return report(capsule.error());
  const common::Request request = request_of(*capsule, *context);
  if (auto checked = common::check_request(request); !checked) return report(checked.error());
  const std::filesystem::path folder = options.keep;
  if (!options.keep.empty())
    if (auto kept = keep(*capsule, folder); !kept) return report(kept.error());

  std::vector<Outcome> outcomes(1);
  const std::string copy = options.keep.empty() ? "/dev/null" : (folder / "module.so").string();
  compile_all(*context,
              {{.name = request.name,
                .request = request,
                .copy_to = copy,
                .copy_remedy = kNameAnotherDirectory,
                .as_it_is = true}},
              {0}, deadline, outcomes);
  const Outcome& outcome = outcomes.front();
  const Replayed replayed = compare(capsule->error, outcome.error);
  const Changes changes{changes_here(*context, *capsule, request), changes_around_here(*context, *capsule)};
  (options.json ? print_json : print_text)(*capsule, outcome, replayed, changes);
  if (!options.keep.empty() && outcome.error)
    if (auto kept = write_file(folder / "log.txt", common::to_text(*outcome.error)); !kept) return report(kept.error());
  return outcome.error ? common::exit_code(outcome.error->kind) : 0;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* replay = app.add_subcommand("replay", "compile again what failed, from its capsule");
  replay->footer(common::help_footer(kFooter, {"jitc replay capsule.json", "jitc replay --keep failed capsule.json"}));
  replay->add_option("CAPSULE", options->file, "the file that an error named, or a copy")->required();
  options->settings.add(*replay, {"cc", "runtime_dir"});
  replay->add_option("--keep", options->keep, "write source, headers, command, log and module into this directory")
      ->type_name("DIR");
  replay->add_flag("--json", options->json, "one JSON object: result, recorded, here, changes");
  add_timeout(*replay, options->timeout, "seconds that everything may take; 0: no end");
  replay->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
