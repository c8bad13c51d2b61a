// jitc cache: look into the store, and care for it. It needs no daemon.
#include "client/cli/cache.h"

#include <memory>
#include <string>
#include <utility>

#include "common/settings.h"

namespace jitc::cli {
namespace {

using Options = std::shared_ptr<CacheOptions>;

CLI::App* add(CLI::App& cache, Action& action, const Options& options, const char* name, const char* help,
              int (*run)(const Context&, const CacheOptions&)) {
  auto* command = cache.add_subcommand(name, help);
  options->settings.add(*command, {"runtime_dir", "store"});
  command->callback([options, run, &action] {
    action = [options, run] {
      const auto context = Context::load(options->settings);
      if (!context) return report(context.error());
      if (context->settings.value("store").origin != "--store") warn_of_other_store(*context);
      return run(*context, *options);
    };
  });
  return command;
}

// An option whose text a parser of the settings understands.
template <class Value>
void add_parsed(CLI::App& command, const std::string& name, std::optional<Value>& value, const std::string& type,
                common::Result<Value> (*parse)(std::string_view), const std::string& help) {
  command
      .add_option_function<std::string>(
          name, [&value, parse](const std::string& text) { value = *parse(text); }, help)
      ->check([parse](const std::string& text) {
        const auto parsed = parse(text);
        return parsed ? std::string() : "'" + text + "' is " + parsed.error().message + ": " + parsed.error().remedy;
      })
      ->type_name(type);
}

void add_ls(CLI::App& cache, Action& action, const Options& options) {
  auto* ls =
      add(cache, action, options, "ls", "artifacts: key, size, last use, seconds of their compile, name", cache_ls);
  ls->add_option("--sort", options->sort,
                 "used (last used first), size (largest first), name, age (oldest first), compile-seconds (longest "
                 "first)")
      ->check(CLI::IsMember({"used", "size", "name", "age", "compile-seconds"}))
      ->capture_default_str()
      ->type_name("ORDER");
  add_parsed<std::uint64_t>(*ls, "--limit", options->limit, "N", common::parse_positive, "only the first N");
  ls->add_flag("--json", options->json, "one JSON object per artifact");
  ls->footer(common::help_footer("", {"jitc cache ls --limit 10", "jitc cache ls --sort compile-seconds --json"}));
}

void add_show(CLI::App& cache, Action& action, const Options& options) {
  auto* show = add(cache, action, options, "show", "an artifact's manifest, as JSON", cache_show);
  show->add_option("KEY", options->keys, "key, or its beginning")->required()->expected(1);
  show->add_flag("--json", options->json, "in one line");
  show->footer(common::help_footer("", {"jitc cache show 8f02", "jitc cache show --json 8f02"}));
}

void add_verify(CLI::App& cache, Action& action, const Options& options) {
  auto* verify =
      add(cache, action, options, "verify", "read and check every artifact: the corrupt ones' paths", cache_verify);
  verify->add_flag("--repair", options->repair,
                   "move what is corrupt, not trusted or no file out of the writable store, into its quarantine");
  verify->add_flag("--json", options->json, "one JSON object per artifact that is not good");
  verify->footer(common::help_footer(
      "Exit code 7 if an artifact is corrupt, unreadable or not trusted; with --repair, if one is left.\n"
      "Not trusted: another user can have made or changed it. What is removed is compiled again on the next request.",
      {"jitc cache verify", "jitc cache verify --repair --json"}));
}

void add_gc(CLI::App& cache, Action& action, const Options& options) {
  auto* gc = add(cache, action, options, "gc", "bring the writable store within its limits", cache_gc);
  add_parsed<std::uint64_t>(*gc, "--max-bytes", options->max_bytes, "SIZE", common::parse_bytes,
                            "its size, such as 2G; 0: any [JITC_STORE_MAX]");
  add_parsed<std::uint64_t>(*gc, "--max-entries", options->max_entries, "N", common::parse_count,
                            "number of artifacts; 0: any [JITC_STORE_MAX_ENTRIES]");
  add_parsed<double>(*gc, "--max-age", options->max_age, "TIME", common::parse_seconds,
                     "time since the last use, such as 30d; 0: any [JITC_STORE_MAX_AGE]");
  gc->add_flag("--dry-run", options->dry_run, "say what would go, and change nothing");
  gc->add_flag("--json", options->json, "one JSON object");
  gc->footer(common::help_footer(
      "What was used longest ago goes first; what was used within the last hour stays whatever the limits say.\n"
      "Temporary files of writers that have ended go too, and all but the last of the quarantine.\n"
      "A daemon does the same by itself. Exit code 4: another process of this node cleans the store now.",
      {"jitc cache gc --dry-run", "jitc cache gc --max-bytes 2G --max-age 30d"}));
}

void add_rm(CLI::App& cache, Action& action, const Options& options) {
  auto* rm = add(cache, action, options, "rm", "remove artifacts from the writable store", cache_rm);
  rm->add_option("KEY", options->keys, "keys, or their beginnings of 4 digits at least");
  add_parsed<double>(*rm, "--older-than", options->older_than, "TIME", common::parse_seconds,
                     "what was not used for so long, such as 30d");
  rm->add_flag("--corrupt", options->corrupt, "what does not verify");
  rm->add_flag("--all", options->all, "everything; needs --yes");
  rm->add_flag("--yes", options->yes, "with what names everything (--all, --older-than 0): really");
  rm->add_flag("--json", options->json, "one JSON object per artifact");
  rm->footer(common::help_footer(
      "Nothing is removed when a KEY is of no artifact or of several (exit code 2). Who has an artifact loaded keeps "
      "it.\nExit code 7 if one cannot be removed.",
      {"jitc cache rm 8f02", "jitc cache rm --older-than 30d --json"}));
}

void add_export(CLI::App& cache, Action& action, const Options& options) {
  auto* out = add(cache, action, options, "export", "put artifacts into one archive file", cache_export);
  out->add_option("KEY", options->keys, "keys, or their beginnings");
  out->add_flag("--all", options->all, "every artifact of the stores");
  out->add_option("-o,--output", options->archive, "the archive; - is standard output")->required()->type_name("FILE");
  out->add_flag("--json", options->json, "one JSON object of what was written; the archive must be a file");
  out->footer(common::help_footer(
      "The archive is a tar file; equal artifacts make equal archives. Each artifact is verified before: one that is\n"
      "corrupt is told and left out (exit code 7).",
      {"jitc cache export --all -o artifacts.tar", "jitc cache export 8f02 -o one.tar"}));
}

void add_import(CLI::App& cache, Action& action, const Options& options) {
  auto* in = add(cache, action, options, "import", "put an archive's artifacts into the writable store", cache_import);
  in->add_option("FILE", options->archive, "the archive; - is standard input")->required();
  in->add_flag("--json", options->json, "one JSON object per entry");
  in->footer(common::help_footer(
      "Each artifact is verified before it is published, whatever its name; those that the store has stay as they "
      "are.\n"
      "Exit code 7: something in the archive is no good artifact, the archive is damaged or cut short (what came "
      "before\n"
      "is imported), or the store cannot be written. An artifact is code: import from people whom you trust.",
      {"jitc cache import artifacts.tar", "jitc cache import --json --store other artifacts.tar"}));
}

}  // namespace

void add_cache(CLI::App& app, Action& action) {
  auto options = std::make_shared<CacheOptions>();
  auto* cache = app.add_subcommand("cache", "look into the store, and care for it");
  cache->require_subcommand(1);
  cache->footer(
      "The stores are those of the daemon that runs, else those of the settings; --store names one.\n"
      "A store that does not exist yet holds nothing: exit code 0, and a line that says so. What is no store is an\n"
      "error: exit code 7.");
  add_ls(*cache, action, options);
  add_show(*cache, action, options);
  add_verify(*cache, action, options);
  add_gc(*cache, action, options);
  add_rm(*cache, action, options);
  add_export(*cache, action, options);
  add_import(*cache, action, options);
}

}  // namespace jitc::cli
