#include "client/gate/local_store.h"

#include <utility>
#include <vector>

#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"

namespace jitc::gate {
namespace {

std::vector<std::string> layers_of(const common::Identity& identity) {
  std::vector<std::string> layers = identity.read_only_stores;
  if (!identity.store.empty()) layers.push_back(identity.store);
  return layers;
}

}  // namespace

std::optional<Obtained> LocalStore::look_up(const common::Request& request) {
  const auto identity = common::read_identity(runtime_dir_);
  if (!identity || !common::may_hit_directly(request, *identity)) return std::nullopt;
  const auto resolved = common::resolve(request, *identity);
  if (!resolved) return std::nullopt;

  common::StoredArtifact artifact;
  if (common::StoreReader(layers_of(*identity)).look_up(resolved->key, artifact) != common::LookupOutcome::kFound)
    return std::nullopt;
  // The daemon counts the hit and knows that the entry is in use; without one the file's own time says so.
  const std::string_view key(reinterpret_cast<const char*>(resolved->key.bytes.data()), resolved->key.bytes.size());
  common::report_hit(runtime_dir_, key);
  common::touch_artifact(artifact.path);
  Obtained obtained;
  obtained.bytes = std::move(artifact.bytes);
  obtained.key = resolved->key;
  obtained.origin = Origin::kStore;
  return obtained;
}

}  // namespace jitc::gate
