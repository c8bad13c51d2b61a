// Artifacts that compute a number of their own, by which a wrong module is seen.
#pragma once

#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/test_artifact.h"

namespace jitc::testing {

// What answer(2.0) of the module for this request must be.
inline double number_of(const common::Digest& request) {
  return 2.0 * (1 + request.bytes[0] + 256 * request.bytes[1] + 65536 * request.bytes[2]);
}

// The artifact file of that module, with the request's digest as its key.
inline std::string numbered_artifact(const common::Digest& request, common::IsaMask isa_needed = 1) {
  using Bytes = std::array<char, sizeof(double)>;
  std::string elf = module_image("numbered");
  const auto pattern = std::bit_cast<Bytes>(0x1.23456789abcdep+777);
  const auto factor = std::bit_cast<Bytes>(number_of(request) / 2.0);
  const std::size_t at = elf.find(std::string_view(pattern.data(), pattern.size()));
  if (at == std::string::npos) throw std::runtime_error("the module 'numbered' does not hold its pattern");
  std::memcpy(elf.data() + at, factor.data(), factor.size());
  return as_artifact(std::move(elf), "numbered", request, isa_needed);
}

}  // namespace jitc::testing
