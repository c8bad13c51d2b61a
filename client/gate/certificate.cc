#include "client/gate/certificate.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace jitc::gate {
namespace {

constexpr std::uint64_t kStrict = 1;  // no error kind has the number 0
constexpr int kPatienceAt = 32;
constexpr std::uint64_t kErrors = (std::uint64_t{1} << kPatienceAt) - 1 - kStrict;
constexpr std::size_t kDigestWords = 4;
constexpr std::size_t kDigestAt = 3;
constexpr std::size_t kComplementAt = kDigestAt + kDigestWords;
constexpr std::size_t kHeldAt = kComplementAt + kDigestWords;

// The lowest bit of such bits is the least patience.
std::uint64_t patience_bit(std::chrono::milliseconds patience) {
  if (patience.count() <= 0) return 0;
  const int class_of = std::bit_width(static_cast<std::uint64_t>(patience.count())) - 1;
  return std::uint64_t{1} << (kPatienceAt + std::min(class_of, 31));
}

}  // namespace

CertificateWords Certificate::words() const {
  CertificateWords words{};
  words[0] = needs;
  words[1] = (is_strict ? kStrict : 0) | (error ? std::uint64_t{1} << static_cast<unsigned>(*error) : 0) |
             patience_bit(patience);
  words[2] = ~isa;
  if (error) return words;
  std::memcpy(&words[kDigestAt], call.bytes.data(), call.bytes.size());
  for (std::size_t i = 0; i < kDigestWords; ++i) words[kComplementAt + i] = ~words[kDigestAt + i];
  if (held) {
    words[kHeldAt] = *held;
    words[kHeldAt + 1] = ~*held;
  }
  return words;
}

common::Digest call_digest(const common::Digest& request, std::string_view manifest) {
  return common::Hasher("jitc call 2").digest("request", request).text("manifest", manifest).finish();
}

common::Digest numbered(common::Digest call, std::uint64_t sequence) {
  for (std::size_t i = 0; i < sizeof sequence; ++i) call.bytes[i] ^= static_cast<std::uint8_t>(sequence >> 8 * i);
  return call;
}

Verdict judge(const CertificateWords& combined) {
  Verdict verdict;
  verdict.someone_needs = combined[kHeldAt] & combined[kHeldAt + 1] ? ~std::uint64_t{0} : combined[0];
  verdict.someone_is_strict = combined[1] & kStrict;
  verdict.someone_failed = (combined[1] & kErrors) != 0;
  if (const std::uint64_t classes = combined[1] >> kPatienceAt)
    verdict.least_patience = std::chrono::milliseconds(std::int64_t{1} << std::countr_zero(classes));
  verdict.common_isa = ~combined[2];
  verdict.all_alike = true;
  for (std::size_t i = 0; i < kDigestWords; ++i)
    if (combined[kDigestAt + i] & combined[kComplementAt + i]) verdict.all_alike = false;
  return verdict;
}

}  // namespace jitc::gate
