// jitc explain: would this source be a hit, and if not, in what is it another than the nearest artifact; or how two
// artifacts differ. Reads stores and the daemon's identity file only.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>

#include "client/cli/cache_entries.h"
#include "client/cli/context.h"
#include "client/cli/input.h"
#include "client/cli/json_text.h"
#include "client/cli/key_fields.h"
#include "client/cli/source_options.h"
#include "client/cli/status_text.h"
#include "common/files.h"
#include "common/flags.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::Result;
using Json = nlohmann::ordered_json;

// Manifests are read one by one, and a shared store may be slow and large.
constexpr std::size_t kMostManifests = 10'000;
constexpr std::size_t kKeyDigits = 64;

constexpr const char* kFooter =
    "FILE: the fields of its key, whether it would be a hit, and on a miss the nearest artifact and what differs.\n"
    "KEY: the fields of an artifact's key. Two of either: both side by side, '*' marks what differs. A name that is\n"
    "no file and all hexadecimal digits is a key, or the beginning of one.\n"
    "Nothing is compiled, and no daemon is asked or started: one that runs has left on file what it makes keys of.\n"
    "Exit codes: 0 told, whatever it is; else as for 'jitc submit'.";

struct Options {
  std::vector<std::string> names;
  bool json = false;
  SourceOptions source;
};

// One side of a comparison.
struct Subject {
  std::string name;  // as given; of an artifact its first caller's
  std::optional<std::string> key, request;
  KeyFields fields;
  std::optional<std::string> text;  // of the source, where it is known
  std::string path;                 // of the artifact
  double unused_seconds = 0;
  std::vector<std::string> notes;  // what is not known, and why
};

bool is_key(const std::string& name) {
  const bool is_hex =
      !name.empty() && name.size() <= kKeyDigits && name.find_first_not_of("0123456789abcdef") == std::string::npos;
  std::error_code ignored;
  return is_hex && !std::filesystem::exists(name, ignored);
}

// ---- sources -------------------------------------------------------------------------------------------------------

// What no daemon need be asked for: the level that this CPU would give.
std::optional<std::string> level_here(const common::Request& request) {
  const bool native =
      request.isa_wish == "native" || std::ranges::find(request.flags, "-march=native") != request.flags.end();
  if (native) return std::nullopt;
  return request.isa_wish == "common" ? std::string(common::isa_level_of(common::host_isa())) : request.isa_wish;
}

// The fields that the daemon adds, and the key, where its identity file says enough.
void resolve(const Context& context, const common::Request& request, Subject& subject) {
  KeyTerms terms;
  terms.isa = level_here(request);
  const auto identity = common::read_identity(context.runtime_dir);
  if (!identity) {
    if (context.settings.list("include_roots").empty()) terms.includes = "";
    subject.notes.push_back("no daemon has said which compiler it has: " + common::to_line(identity.error()));
  } else if (const auto resolved = common::resolve(request, *identity); !resolved) {
    terms.triple = identity->triple;
    subject.notes.push_back("the key is not known: " + common::to_line(resolved.error()));
  } else {
    subject.key = resolved->key.hex();
    terms.compiler_identity = resolved->compiler.identity;
    terms.triple = resolved->target.triple;
    terms.isa = resolved->target.isa;
    terms.includes = resolved->includes ? resolved->includes->hex() : "";
    if (!common::may_hit_directly(request, *identity))
      subject.notes.emplace_back("the daemon looks again at compilers and include roots before it makes the key");
  }
  subject.fields = fields_of(request, terms);
}

// What the daemon would refuse is refused here.
Result<Subject> subject_of_file(const Context& context, const Options& options, const std::string& file) {
  auto text = read_input(file, Deadline(0));
  if (!text) return std::unexpected(std::move(text.error()));
  auto shared = common_request(options.source, context);
  if (!shared) return std::unexpected(std::move(shared.error()));
  Subject subject;
  subject.name = file == "-" ? "<stdin>" : file;
  const auto request = request_for(std::move(*shared), subject.name, std::move(*text));
  if (!request) return std::unexpected(request.error());
  if (auto checked = common::check_flags(request->flags, context.settings.list("include_roots")); !checked)
    return std::unexpected(std::move(checked.error()));
  if (auto scanned = common::check_source(request->text()); !scanned)
    return std::unexpected(std::move(scanned.error()));
  subject.request = common::request_digest(*request).hex();
  resolve(context, *request, subject);
  subject.text = request->origin;
  return subject;
}

// ---- artifacts -----------------------------------------------------------------------------------------------------

// The source that an artifact was made of, if the file of its name has it still.
std::optional<std::string> source_of(const common::Manifest& manifest) {
  std::error_code error;
  if (manifest.origin_digest.empty() || !std::filesystem::is_regular_file(manifest.name, error)) return std::nullopt;
  auto text = common::read_file(manifest.name, std::min(manifest.origin_bytes, common::kMostFileBytes));
  if (!text || common::text_digest(*text).hex() != manifest.origin_digest) return std::nullopt;
  return std::move(*text);
}

// What is to be said of the artifact of this key in these layers. What is there and broken is built again.
common::LookupOutcome verify(const std::vector<common::StoreLayer>& layers, const common::Digest& key,
                             common::StoredArtifact& artifact, std::vector<std::string>& notes) {
  std::string reason;
  const auto outcome = common::StoreReader(layers).look_up(key, artifact, &reason);
  const std::string what_to_do = artifact.remedy.empty() ? "" : "; " + artifact.remedy;
  if (outcome == common::LookupOutcome::kCorrupt)
    notes.push_back(artifact.path + " is there but does not verify (" + reason + "): it is built again" + what_to_do);
  if (outcome == common::LookupOutcome::kUntrusted)
    notes.push_back(artifact.path + " is there but is not used (" + reason + ")" + what_to_do);
  if (outcome == common::LookupOutcome::kAbsent && !reason.empty())
    notes.push_back(artifact.path + " is there but cannot be read (" + reason + ")" + what_to_do);
  return outcome;
}

Subject subject_of(const common::Manifest& manifest, const CacheEntry& entry) {
  Subject subject;
  subject.name = manifest.name;
  subject.key = entry.key.hex();
  if (!manifest.request.empty()) subject.request = manifest.request;
  subject.fields = fields_of(manifest);
  subject.path = entry.path;
  subject.unused_seconds = entry.unused_seconds;
  if (manifest.origin_digest.empty())
    subject.notes.push_back("artifact " + subject.key->substr(0, 12) +
                            " is of an earlier jitc, which wrote only a part of the fields down");
  common::StoredArtifact artifact;
  verify({entry.layer}, entry.key, artifact, subject.notes);
  return subject;
}

Result<Subject> subject_of_key(const CacheListing& listing, const std::string& text) {
  const auto key = key_that_begins(text, listing.entries);
  if (!key) return std::unexpected(key.error());
  const auto entry = std::ranges::find(listing.entries, *key, &CacheEntry::key);
  const auto manifest = common::read_manifest(entry->path);
  if (!manifest) return std::unexpected(manifest.error());
  Subject subject = subject_of(*manifest, *entry);
  subject.text = source_of(*manifest);
  return subject;
}

struct Nearest {
  std::optional<Subject> subject;
  std::size_t passed_over = 0;  // artifacts that were not looked at
};

// The fewest fields that differ; among equals one of the same name, then the one used last.
Nearest nearest_to(const Subject& source, const CacheListing& listing) {
  Nearest nearest;
  using Rank = std::tuple<std::size_t, bool>;
  std::optional<Rank> best;
  const std::size_t count = std::min(listing.entries.size(), kMostManifests);
  nearest.passed_over = listing.entries.size() - count;
  std::optional<common::Manifest> found;
  const CacheEntry* where = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    auto manifest = common::read_manifest(listing.entries[i].path);
    if (!manifest) continue;
    const Rank rank{distance(source.fields, fields_of(*manifest)), manifest->name != source.name};
    if (best && *best <= rank) continue;
    best = rank;
    found = std::move(*manifest);
    where = &listing.entries[i];
  }
  if (!found) return nearest;
  nearest.subject = subject_of(*found, *where);
  nearest.subject->text = source_of(*found);
  return nearest;
}

// ---- what is printed -----------------------------------------------------------------------------------------------

std::string short_key(const Subject& subject) { return subject.key ? subject.key->substr(0, 12) : "key not known"; }
std::string title(const Subject& subject) {
  return subject.path.empty() ? shown_name(subject.name) : short_key(subject) + " (" + shown_name(subject.name) + ")";
}

void print_line(const std::string& mark, const std::string& name, const std::string& value) {
  std::printf("%s %-17s  %s\n", mark.c_str(), name.c_str(), shown_name(value).c_str());
}

void print_fields(const Subject& subject) {
  print_line(" ", "key", subject.key.value_or("(not known)"));
  print_line(" ", "request", subject.request.value_or("(not known)"));
  for (const auto& field : subject.fields) print_line(" ", field.name, shown(field));
}

std::optional<LineDifference> line_difference(const Subject& here, const Subject& there) {
  if (!here.text || !there.text) return std::nullopt;
  return first_difference(*here.text, *there.text);
}

void print_differences(const Subject& here, const Subject& there) {
  for (const auto& difference : differences(here.fields, there.fields)) {
    std::printf("* %s%s\n", difference.name.c_str(), difference.follows ? " (follows from another)" : "");
    std::printf("    %-14s %s\n    %-14s %s\n", "here:", shown_name(difference.here).c_str(),
                "there:", shown_name(difference.there).c_str());
    if (difference.name != "text") continue;
    if (const auto line = line_difference(here, there))
      std::printf("    line %-9zu %s\n    %-14s %s\n", line->line, shown_name(line->here).c_str(), "",
                  shown_name(line->there).c_str());
  }
}

void print_side_by_side(const Subject& here, const Subject& there) {
  const auto found = differences(here.fields, there.fields);
  std::printf("here:  %s\nthere: %s\n", title(here).c_str(), title(there).c_str());
  for (std::size_t i = 0; i < here.fields.size(); ++i) {
    const auto &a = here.fields[i], &b = there.fields[i];
    const bool differs = std::ranges::find(found, a.name, &FieldDifference::name) != found.end();
    print_line(differs ? "*" : " ", a.name, shown(a));
    if (differs || !a.values || !b.values) print_line(differs ? "*" : " ", "", shown(b));
  }
  if (const auto line = line_difference(here, there))
    std::printf("first differing line of the texts: %zu\n  here:  %s\n  there: %s\n", line->line,
                shown_name(line->here).c_str(), shown_name(line->there).c_str());
}

Json json_of(const Subject& subject) {
  Json fields = Json::object();
  for (const auto& field : subject.fields) {
    const bool is_list = field.name == "flags" || field.name == "headers";
    if (!field.values) {
      fields[field.name] = nullptr;
    } else if (is_list) {
      fields[field.name] = *field.values;
    } else {
      fields[field.name] = field.values->front();
    }
  }
  Json object = {{"name", subject.name}, {"key", nullptr}, {"request", nullptr}, {"fields", std::move(fields)}};
  if (subject.key) object["key"] = *subject.key;
  if (subject.request) object["request"] = *subject.request;
  if (!subject.path.empty()) object["path"] = subject.path;
  return object;
}

Json differences_json(const Subject& here, const Subject& there) {
  Json list = Json::array();
  for (const auto& difference : differences(here.fields, there.fields)) {
    Json one = {{"field", difference.name}, {"here", difference.here}, {"there", difference.there}};
    if (difference.follows) one["follows"] = true;
    const auto line = difference.name == "text" ? line_difference(here, there) : std::nullopt;
    if (line) one["line"] = {{"number", line->line}, {"here", line->here}, {"there", line->there}};
    list.push_back(std::move(one));
  }
  return list;
}

void print_json(const Json& object) { std::printf("%s\n", one_line(object).c_str()); }

void say_notes(const Subject& subject) {
  for (const auto& note : subject.notes) say("jitc: " + shown_name(subject.name) + ": note: " + note + "\n");
}

// ---- the command ---------------------------------------------------------------------------------------------------

int explain_one(const Subject& subject, bool json) {
  if (json) {
    Json object = json_of(subject);
    object["notes"] = subject.notes;
    print_json(object);
  } else {
    std::printf("%s\n", title(subject).c_str());
    print_fields(subject);
  }
  say_notes(subject);
  return 0;
}

int explain_two(const Subject& here, const Subject& there, bool json) {
  if (json) {
    print_json({{"here", json_of(here)}, {"there", json_of(there)}, {"differs", differences_json(here, there)}});
  } else {
    print_side_by_side(here, there);
  }
  say_notes(here);
  say_notes(there);
  return 0;
}

enum class Hit { kYes, kNo, kUnknown };

// Would it be served from the store? Sets the artifact's path.
Hit look_up(const std::vector<common::StoreLayer>& layers, Subject& source) {
  if (!source.key) return Hit::kUnknown;
  common::StoredArtifact artifact;
  const auto outcome = verify(layers, *common::Digest::from_hex(*source.key), artifact, source.notes);
  if (outcome != common::LookupOutcome::kFound) return Hit::kNo;
  source.path = artifact.path;
  return Hit::kYes;
}

void print_nearest(const Subject& source, const Subject& near) {
  const auto found = differences(source.fields, near.fields);
  std::printf("nearest: %s, used %s ago, %s\n", title(near).c_str(), duration_text(near.unused_seconds).c_str(),
              found.empty() ? "no field that is known differs" : "differs in");
  print_differences(source, near);
}

int explain_file(const Context& context, Subject source, bool json) {
  const auto layers = cache_layers(context);
  const Hit hit = look_up(layers, source);
  Nearest nearest;
  if (hit != Hit::kYes) nearest = nearest_to(source, list_stores(layers));
  if (nearest.passed_over > 0)
    source.notes.push_back("of " + std::to_string(nearest.passed_over + kMostManifests) + " artifacts the " +
                           std::to_string(kMostManifests) + " that were used last were compared");
  if (json) {
    Json object = json_of(source);
    object["hit"] = hit == Hit::kUnknown ? Json() : Json(hit == Hit::kYes);
    if (nearest.subject) {
      object["nearest"] = json_of(*nearest.subject);
      object["nearest"]["unused_seconds"] = nearest.subject->unused_seconds;
      object["nearest"]["differs"] = differences_json(source, *nearest.subject);
    }
    object["notes"] = source.notes;
    print_json(object);
  } else {
    const char* words = hit == Hit::kYes  ? "a hit: "
                        : hit == Hit::kNo ? "a miss"
                                          : "hit or miss is not known: the daemon that is asked decides";
    std::printf("%s: %s%s\n", shown_name(source.name).c_str(), words, shown_name(source.path).c_str());
    print_fields(source);
    if (nearest.subject) print_nearest(source, *nearest.subject);
    if (hit != Hit::kYes && !nearest.subject) std::printf("no artifact is in the store to compare with\n");
  }
  say_notes(source);
  if (nearest.subject) say_notes(*nearest.subject);
  return 0;
}

int run(const Options& options) {
  const auto context = Context::load(options.source.settings);
  if (!context) return report(context.error());
  std::optional<CacheListing> listing;
  std::vector<Subject> subjects;
  for (const auto& name : options.names) {
    const bool of_key = is_key(name);
    if (of_key && !listing) listing = list_stores(cache_layers(*context));
    auto subject = of_key ? subject_of_key(*listing, name) : subject_of_file(*context, options, name);
    if (!subject && of_key) return report_not_found(subject.error(), *listing);
    if (!subject) return report(subject.error(), name);
    subjects.push_back(std::move(*subject));
  }
  if (subjects.size() == 2) return explain_two(subjects[0], subjects[1], options.json);
  if (is_key(options.names.front())) return explain_one(subjects.front(), options.json);
  return explain_file(*context, std::move(subjects.front()), options.json);
}

}  // namespace

void add_explain(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* explain = app.add_subcommand("explain", "why a source is a hit or a miss; how artifacts differ");
  explain->footer(common::help_footer(
      kFooter, {"jitc explain kernel.c", "jitc explain kernel.c other.c", "jitc explain --flag=-O2 --json kernel.c"}));
  explain->add_option("NAME", options->names, "a C source (- is standard input), or an artifact's key")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE|KEY");
  add_source_options(*explain, options->source);
  options->source.settings.add(*explain, {"store"});
  explain->add_flag("--json", options->json, "one JSON object");
  explain->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
