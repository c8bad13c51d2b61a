#include "client/cli/artifact_archive.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "client/cli/tar.h"
#include "common/request.h"
#include "common/store_reader.h"

namespace jitc::cli {
namespace {

using common::ArtifactView;
using common::Digest;
using common::ErrorKind;
using common::fail;
using common::Result;

// The key that these fields make.
std::optional<Digest> key_of(const common::Manifest& manifest) {
  const auto request = Digest::from_hex(manifest.request);
  const auto includes = Digest::from_hex(manifest.includes);
  if (!request || (!includes && !manifest.includes.empty())) return std::nullopt;
  return common::artifact_key(*request, {manifest.compiler, {}, manifest.compiler_identity},
                              {manifest.triple, manifest.isa}, includes);
}

class Reader {
 public:
  explicit Reader(const Supply& supply) : supply_(supply) {}

  // kCorrupt when there are fewer.
  Result<void> read(std::uint64_t size, std::string& bytes) {
    bytes.clear();
    std::array<char, 65536> buffer;
    while (bytes.size() < size) {
      const auto got =
          supply_(buffer.data(), static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), size - bytes.size())));
      if (!got) return std::unexpected(got.error());
      if (*got == 0) return damaged("cut short");
      bytes.append(buffer.data(), *got);
      at_ += *got;
    }
    return {};
  }
  Result<void> skip(std::uint64_t size) {
    std::string ignored;
    for (; size > 0; size -= ignored.size())
      if (auto done = read(std::min<std::uint64_t>(size, 65536), ignored); !done) return done;
    return {};
  }
  std::unexpected<common::Error> damaged(const std::string& how) const {
    return fail(ErrorKind::kCorrupt, how + " at byte " + std::to_string(at_) + "; what came before was imported",
                "the archive", "export it again, or carry it again");
  }

 private:
  const Supply& supply_;
  std::uint64_t at_ = 0;
};

// Names are not used; who makes such has something else in mind.
bool leads_out(const std::string& name) {
  return name.starts_with('/') || ("/" + name + "/").find("/../") != std::string::npos;
}

// Why the content need not be looked at.
std::optional<common::Error> refusal(const TarEntry& entry) {
  const auto refused = [&](const char* why) {
    return fail(ErrorKind::kRefused, why, entry.name, "import archives of 'jitc cache export'").error();
  };
  if (!entry.is_file) return refused("not a regular file");
  if (leads_out(entry.name)) return refused("a name that leads out of a store");
  if (entry.size > kLargestArtifact) return refused("too large for an artifact");
  return std::nullopt;
}

// An error: the store takes no more.
Result<ImportedEntry> put(store::Store& store, std::string name, std::string_view bytes) {
  using State = ImportedEntry::State;
  ImportedEntry entry{.name = std::move(name), .state = State::kRefused, .path = {}, .reason = {}};
  const auto view = check_artifact(bytes);
  if (!view) {
    entry.reason = view.error();
    entry.reason.thing = entry.name;
    return entry;
  }
  common::StoredArtifact standing;
  if (common::StoreReader({store.layers().back()}).look_up(view->key, standing) == common::LookupOutcome::kFound) {
    entry.state = State::kPresent;
    entry.path = std::move(standing.path);
    return entry;
  }
  const auto path = store.publish(view->key, view->elf, bytes.substr(view->elf.size()));
  if (!path) return std::unexpected(path.error());
  if (auto synced = store.sync(*path); !synced) return std::unexpected(synced.error());
  entry.state = State::kPublished;
  entry.path = *path;
  return entry;
}

}  // namespace

Result<ArtifactView> check_artifact(std::string_view bytes) {
  auto view = common::verify_artifact(bytes);
  if (!view) return view;
  const auto manifest = common::manifest_from_json(view->manifest);
  if (!manifest) return std::unexpected(manifest.error());
  if (manifest->key != view->key.hex() || key_of(*manifest) != view->key)
    return fail(ErrorKind::kCorrupt, "its manifest is that of another key", view->key.hex());
  return view;
}

Result<void> write_entry(const Sink& sink, const Digest& key, std::string_view artifact) {
  const std::string name = common::artifact_path("", key).substr(1);
  auto written = sink(tar_header(name, artifact.size()));
  if (written) written = sink(artifact);
  if (written) written = sink(std::string(tar_padding(artifact.size()), '\0'));
  return written;
}

Result<void> write_end(const Sink& sink) { return sink(tar_end()); }

Result<void> import_artifacts(const Supply& supply, store::Store& store,
                              const std::function<void(const ImportedEntry&)>& tell) {
  Reader reader(supply);
  std::string block, bytes;
  for (;;) {
    if (auto read = reader.read(kTarBlock, block); !read) return read;
    const auto entry = tar_entry(block);
    if (!entry) return reader.damaged(entry.error().message);
    if (!*entry) return {};
    const TarEntry& next = **entry;
    auto refused = refusal(next);
    auto read = refused ? reader.skip(next.size) : reader.read(next.size, bytes);
    if (read) read = reader.skip(tar_padding(next.size));
    if (!read) return read;
    if (refused) {
      if (!next.is_directory)
        tell({.name = next.name, .state = ImportedEntry::State::kRefused, .path = {}, .reason = std::move(*refused)});
      continue;
    }
    const auto put_there = put(store, next.name, bytes);
    if (!put_there) return std::unexpected(put_there.error());
    tell(*put_there);
  }
}

}  // namespace jitc::cli
