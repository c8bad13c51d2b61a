#include "daemon/service/artifacts.h"

#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <utility>

#include "common/artifact.h"
#include "common/text.h"
#include "daemon/observe/log.h"

namespace jitc::service {
namespace {

constexpr mode_t kForOthers = 0066;
constexpr std::size_t kMostExperience = 512;
constexpr std::chrono::seconds kExperiencePatience{2};  // a shared store may be slow and large

common::Manifest manifest_of(const Prepared& prepared, const WorkerFinished& compiled, const CompileFacts& facts) {
  const common::ResolvedRequest& resolved = prepared.resolved;
  const common::Request& request = prepared.request;
  common::Manifest manifest;
  manifest.key = resolved.key.hex();
  if (prepared.command) {
    manifest.kind = facts.outdated ? common::kOutdatedCommandKind : common::kCommandKind;
    manifest.exit_status = static_cast<std::uint32_t>(compiled.exit_status);
    manifest.output_bytes = compiled.output_bytes;
    manifest.stdout_bytes = compiled.stdout_bytes;
    manifest.stderr_bytes = compiled.stderr_bytes;
    manifest.code_bytes = prepared.scan.bytes;
  }
  manifest.request = resolved.request.hex();
  manifest.name = request.name;
  manifest.origin_digest = common::text_digest(request.origin).hex();
  manifest.compiler = resolved.compiler.name;
  manifest.compiler_wish = request.compiler;
  manifest.compiler_identity = resolved.compiler.identity;
  manifest.triple = resolved.target.triple;
  manifest.isa = resolved.target.isa;
  manifest.isa_wish = request.isa_wish;
  manifest.abi_tag = request.abi_tag;
  manifest.share = request.share;
  manifest.cse = request.cse;
  manifest.emitter_version = request.emitter_version;
  manifest.exact_flags = request.exact_flags;
  for (const auto& header : request.headers)
    manifest.headers.push_back({header.name, common::text_digest(header.text).hex()});
  if (resolved.includes) manifest.includes = resolved.includes->hex();
  manifest.origin_bytes = request.origin.size();
  manifest.code_bytes = request.code.size();
  manifest.calls = prepared.scan.calls;
  manifest.largest_function = prepared.scan.largest_function;
  manifest.nesting = prepared.scan.nesting;
  manifest.flags = request.flags;
  manifest.flags_used = compiled.flags_used;
  manifest.rungs = facts.rungs;
  manifest.functions = compiled.functions;
  manifest.compile_seconds = compiled.seconds;
  manifest.peak_bytes = compiled.peak_bytes;
  manifest.predicted_bytes = facts.predicted_bytes;
  manifest.attempts = facts.attempts;
  manifest.checked = facts.checked;
  manifest.log = compiled.log;
  manifest.created = common::utc_text(std::time(nullptr));
  return manifest;
}

// A command's failure is its own; and so are words that name files as this caller does.
bool is_worth_keeping(const common::Command& command, const WorkerFinished& compiled) {
  const bool quiet = compiled.stdout_bytes + compiled.stderr_bytes == 0;
  return compiled.exit_status == 0 && compiled.output_bytes > 0 && (quiet || command.with_messages);
}

// The bytes leave `artifact`, whose views end with that.
void take(common::StoredArtifact& artifact, Product& product) {
  product.path = artifact.path;
  product.digest = artifact.view.digest;
  product.size = artifact.bytes.size();
  if (const auto manifest = common::manifest_from_json(artifact.view.manifest)) {
    product.compile_seconds = manifest->compile_seconds;
    product.peak_bytes = manifest->peak_bytes;
  }
  product.bytes = std::make_shared<const std::string>(std::move(artifact.bytes));
}

}  // namespace

common::Result<std::unique_ptr<Artifacts>> Artifacts::open(const common::Settings& settings,
                                                           const std::string& directory) {
  store::Options options;
  options.directory = directory;
  options.read_only = settings.list("store_readonly");
  options.max_bytes = settings.bytes("store_max");
  options.max_entries = settings.count("store_max_entries");
  options.max_age = common::rounded_up(settings.seconds("store_max_age"));
  options.mode = settings.mode("store_mode");
  options.allow_shared = settings.flag("store_allow_shared");
  if (options.allow_shared && (options.mode & kForOthers) == 0) {
    observe::log_warning("others of the store cannot read what this daemon puts there: they compile it again",
                         {{"store", directory}, {"remedy", "set JITC_STORE_MODE=0660 (store_mode)"}});
  }
  auto store = store::Store::open(std::move(options));
  if (!store) return std::unexpected(store.error());
  for (const common::Error& error : (*store)->refused_layers()) {
    observe::log_warning("read-only store left out", {{"error", common::to_line(error)}});
  }
  for (const common::Error& error : (*store)->unread_layers()) {
    observe::log_warning("read-only store is not there", {{"error", common::to_line(error)}});
  }
  return std::make_unique<Artifacts>(std::move(*store));
}

std::shared_ptr<const Product> Artifacts::look_up(const common::Digest& key) {
  common::StoredArtifact artifact;
  std::string reason;
  const auto outcome = store_->look_up(key, artifact, &reason);
  if (outcome == common::LookupOutcome::kCorrupt) {
    observe::log_warning("artifact does not verify", {{"path", artifact.path}, {"reason", reason}});
  }
  if (outcome == common::LookupOutcome::kUntrusted) {
    observe::log_warning("artifact is not trusted", {{"path", artifact.path}, {"reason", reason}});
  }
  if (outcome != common::LookupOutcome::kFound) return nullptr;
  auto product = std::make_shared<Product>();
  product->key = key;
  take(artifact, *product);
  return product;
}

std::shared_ptr<const Product> Artifacts::publish(const Prepared& prepared, const WorkerFinished& compiled,
                                                  const CompileFacts& facts) {
  const common::ResolvedRequest& resolved = prepared.resolved;
  auto product = std::make_shared<Product>();
  product->key = resolved.key;
  auto elf = common::read_all(compiled.object.get(), "object");
  if (!elf) {
    observe::log_error("object lost", {{"error", common::to_line(elf.error())}});
    return nullptr;
  }
  const std::string tail =
      common::make_tail(*elf, manifest_of(prepared, compiled, facts), resolved.key, resolved.isa_needed);
  product->degraded = !facts.degraded.empty();
  if (product->degraded) {  // the key names the flags that were asked for
    warn("not kept in the store: " + facts.degraded, *product);
  } else if (prepared.command && !is_worth_keeping(*prepared.command, compiled)) {
    // Answered, to those who wait for it now.
  } else if (facts.outdated) {
    warn("not kept in the store: the compiler or a header changed while it was compiled", *product);
  } else {
    if (!facts.replaces.empty())
      warn("compiled anew, since what the store had was refused: " + facts.replaces, *product);
    keep(resolved.key, *elf, tail, prepared.request.no_cache || !facts.replaces.empty(), *product);
  }
  if (product->path.empty()) {
    *elf += tail;
    product->size = elf->size();
    product->digest = common::verify_artifact(*elf).value_or(common::ArtifactView{}).digest;
    product->bytes = std::make_shared<const std::string>(std::move(*elf));
  }
  product->compile_seconds = compiled.seconds;
  product->peak_bytes = compiled.peak_bytes;
  product->is_new = product->is_new || product->path.empty();
  return product;
}

// `fresh`: nothing but these bytes will do.
void Artifacts::keep(const common::Digest& key, const std::string& elf, const std::string& tail, bool fresh,
                     Product& product) {
  if (fresh) set_aside_other(key, elf, product);
  const auto published = store_->publish(key, elf, tail);
  if (!published) return refused(published.error(), product);
  warned_ = false;
  // Read back: another writer's entry may be the one that stands, and nobody is told of a file that does not verify.
  common::StoredArtifact artifact;
  std::string reason;
  if (store_->look_up(key, artifact, &reason) != common::LookupOutcome::kFound) {
    return refused(
        {common::ErrorKind::kStoreUnavailable,
         "what was published cannot be read back: " + (reason.empty() ? "it is not there" : reason), *published},
        product);
  }
  // A read-only layer's, which cannot be moved, or that of a writer who was faster.
  product.is_new = artifact.view.elf == elf;
  if (fresh && !product.is_new) return warn("another artifact stands in the store: " + artifact.path, product);
  take(artifact, product);
}

// One key, two codes: one of them is wrong, or the compiler does not repeat itself.
void Artifacts::set_aside_other(const common::Digest& key, const std::string& elf, Product& product) {
  common::StoredArtifact standing;
  if (store_->look_up(key, standing, nullptr) != common::LookupOutcome::kFound || standing.view.elf == elf) return;
  warn("compiled anew it differs from what the store had: " + standing.path, product);
  store_->set_aside(key);
}

void Artifacts::warn(std::string text, Product& product) {
  observe::log_warning(text, {{"key", product.key.hex()}});
  product.warnings.push_back(std::move(text));
}

void Artifacts::refused(const common::Error& error, Product& product) {
  ++publish_failures_;
  product.warnings.push_back("not kept in the store: " + common::to_line(error));
  if (!warned_.exchange(true)) {
    observe::log_warning("artifacts are not kept; they are answered with their bytes",
                         {{"error", common::to_line(error)}});
  }
}

void Artifacts::settle(const Product& product) {
  if (!product.path.empty()) asio::post(syncs_, [this, path = product.path] { sync(path); });
  if (store_->wants_cleaning()) clean_soon();
}

void Artifacts::sync(const std::string& path) {
  if (auto synced = store_->sync(path); !synced) {
    observe::log_debug("artifact not synced", {{"error", common::to_line(synced.error())}});
  }
}

void Artifacts::begin_care(std::function<void(std::vector<schedule::Experience>)> recall) {
  asio::post(care_, [this, recall = std::move(recall)] { recall(experience()); });
  clean_soon();
}

void Artifacts::end_care() {
  store_->stop_cleaning();
  care_.stop();
  care_.join();
  syncs_.join();
}

void Artifacts::clean_soon() {
  if (cleaning_.exchange(true)) return;
  asio::post(care_, [this] {
    clean();
    cleaning_ = false;
  });
}

std::vector<schedule::Experience> Artifacts::experience() const {
  std::vector<schedule::Experience> all;
  for (const common::Manifest& manifest : store_->newest_manifests(kMostExperience, kExperiencePatience)) {
    // One of before these were counted says nothing about a text like it.
    if (manifest.peak_bytes == 0 || manifest.largest_function == 0) continue;
    all.push_back({.features = {.compiler = manifest.compiler,
                                .optimisation = schedule::optimisation_of(manifest.flags),
                                .math_errno = schedule::math_errno_of(manifest.flags),
                                .bytes = manifest.code_bytes > 0 ? manifest.code_bytes : manifest.origin_bytes,
                                .calls = manifest.calls,
                                .largest_function = manifest.largest_function,
                                .nesting = manifest.nesting},
                   .peak_bytes = manifest.peak_bytes});
  }
  return all;
}

void Artifacts::clean() {
  const auto cleaned = store_->clean();
  if (cleaned.problem) observe::log_warning("store not wholly cleaned", {{"error", common::to_line(*cleaned.problem)}});
  if (cleaned.evicted + cleaned.stale_temps + cleaned.stale_leases == 0) return;
  observe::log_info("store cleaned", {{"evicted", std::to_string(cleaned.evicted)},
                                      {"stale_temps", std::to_string(cleaned.stale_temps)},
                                      {"stale_leases", std::to_string(cleaned.stale_leases)}});
}

}  // namespace jitc::service
