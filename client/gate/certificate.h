// The certificate: what every rank says before the ranks act together, in a few words whose bitwise OR over all ranks
// tells every rank the same. Pure.
//
//   0      one bit per module of the call: this rank needs it; those from number 63 on share the last bit
//   1      bit 0: differing requests are an error here; bit k: this rank cannot make its request, error kind k; bit
//   32+k:
//          this rank waits for at least 2^k ms for a sign of others, and for less than twice as long (k: 0 to 31)
//   2      ~mask of this CPU's instruction sets: the OR of complements is the complement of what all have in common
//   3-6    digest over request, manifest and sequence number; zeros from a rank with an error
//   7-10   its complement; zeros from a rank with an error. A bit set in both ORs differs between two ranks.
//   11-12  the same of what this rank holds (64 bits of its modules' artifact keys), if it holds all; else zeros. Ranks
//          that hold unlike code for the same request need all modules.
#pragma once

#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "common/digest.h"
#include "common/error.h"
#include "common/isa.h"

namespace jitc::gate {

using CertificateWords = std::array<std::uint64_t, 13>;

// The bit in which ranks say that they need module `index` of the call.
constexpr std::uint64_t need_bit(std::size_t index) { return std::uint64_t{1} << (index < 63 ? index : 63); }

struct Certificate {
  std::uint64_t needs = 0;
  bool is_strict = true;
  std::optional<common::ErrorKind> error;
  common::IsaMask isa = 0;
  common::Digest call;
  std::chrono::milliseconds patience{0};  // 0: without limit
  std::optional<std::uint64_t> held;      // by held_bits; none: it needs something
  CertificateWords words() const;
};

// Of one module's call: over all that must be equal on all ranks, but for the call's number.
common::Digest call_digest(const common::Digest& request, std::string_view manifest);

// With the call's number, which changes from call to call where the rest mostly does not: it costs no hashing. Alike
// calls with two numbers differ in those; that two digests differ by just two numbers does not happen to SHA-256.
common::Digest numbered(common::Digest call, std::uint64_t sequence);

// Bits that tell what is held: `before` with the artifact key of one module more. The keys themselves are digests.
inline std::uint64_t held_bits(std::uint64_t before, const common::Digest& key) {
  return std::rotl(before, 1) ^ std::hash<common::Digest>()(key);
}

// The same on every rank, since it follows from the OR alone.
struct Verdict {
  std::uint64_t someone_needs = 0;  // bit by bit; all: ranks hold unlike code
  bool someone_is_strict = false;
  bool someone_failed = false;
  bool all_alike = false;  // ranks with an error aside
  common::IsaMask common_isa = 0;
  std::chrono::milliseconds least_patience{0};  // rounded down to a power of two; 0: nobody has a limit
};
Verdict judge(const CertificateWords& combined);

}  // namespace jitc::gate
