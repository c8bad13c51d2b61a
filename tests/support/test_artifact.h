// Artifacts for tests, from the small modules that the build makes of tests/data/modules.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "common/artifact.h"
#include "common/digest.h"
#include "common/files.h"
#include "common/isa.h"

namespace jitc::testing {

inline std::string module_image(const std::string& name) {
  auto bytes = common::read_file(std::string(JITC_TEST_MODULES) + "/" + name + ".so");
  if (!bytes) throw std::runtime_error(common::to_line(bytes.error()));
  return std::move(*bytes);
}

// The image of a module as the artifact file under `key`.
inline std::string as_artifact(std::string elf, const std::string& name, const common::Digest& key,
                               common::IsaMask isa_needed) {
  common::Manifest manifest;
  manifest.key = key.hex();
  manifest.name = name;
  elf += common::make_tail(elf, manifest, key, isa_needed);
  return elf;
}

// The artifact file of module `name` under `key`.
inline std::string make_artifact(const std::string& name, const common::Digest& key, common::IsaMask isa_needed = 1) {
  return as_artifact(module_image(name), name, key, isa_needed);
}

}  // namespace jitc::testing
