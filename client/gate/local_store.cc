#include "client/gate/local_store.h"

#include <utility>

#include "common/artifact.h"
#include "common/identity.h"
#include "common/runtime_dir.h"
#include "common/store_reader.h"

namespace jitc::gate {
namespace {

bool was_checked(const common::StoredArtifact& artifact) {
  const auto manifest = common::manifest_from_json(artifact.view.manifest);
  return manifest && manifest->checked;
}

}  // namespace

std::optional<Obtained> LocalStore::look_up(const common::Request& request) {
  if (request.no_cache) return std::nullopt;
  const auto identity = common::read_identity(runtime_dir_);
  if (!identity || !common::may_hit_directly(request, *identity)) return std::nullopt;
  const auto resolved = common::resolve(request, *identity);
  if (!resolved) return std::nullopt;

  common::StoredArtifact artifact;
  if (common::StoreReader(common::store_layers(*identity)).look_up(resolved->key, artifact) !=
      common::LookupOutcome::kFound)
    return std::nullopt;
  if (request.checked && !was_checked(artifact)) return std::nullopt;
  // The daemon counts the hit and knows that the entry is in use; without one the file's own time says so.
  const std::string_view key(reinterpret_cast<const char*>(resolved->key.bytes.data()), resolved->key.bytes.size());
  common::report_hit(runtime_dir_, key);
  common::touch_artifact(artifact);
  Obtained obtained;
  obtained.bytes = std::move(artifact.bytes);
  obtained.key = resolved->key;
  obtained.origin = Origin::kStore;
  return obtained;
}

}  // namespace jitc::gate
