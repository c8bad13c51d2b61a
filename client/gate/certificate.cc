#include "client/gate/certificate.h"

#include <cstring>

namespace jitc::gate {
namespace {

constexpr std::uint64_t kStrict = 1;  // no error kind has the number 0
constexpr std::size_t kDigestWords = 4;
constexpr std::size_t kDigestAt = 3;
constexpr std::size_t kComplementAt = kDigestAt + kDigestWords;

}  // namespace

CertificateWords Certificate::words() const {
  CertificateWords words{};
  words[0] = needs;
  words[1] = (is_strict ? kStrict : 0) | (error ? std::uint64_t{1} << static_cast<unsigned>(*error) : 0);
  words[2] = ~isa;
  if (error) return words;
  std::memcpy(&words[kDigestAt], call.bytes.data(), call.bytes.size());
  for (std::size_t i = 0; i < kDigestWords; ++i) words[kComplementAt + i] = ~words[kDigestAt + i];
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
  verdict.someone_needs = combined[0];
  verdict.someone_is_strict = combined[1] & kStrict;
  verdict.someone_failed = (combined[1] & ~kStrict) != 0;
  verdict.common_isa = ~combined[2];
  verdict.all_alike = true;
  for (std::size_t i = 0; i < kDigestWords; ++i)
    if (combined[kDigestAt + i] & combined[kComplementAt + i]) verdict.all_alike = false;
  return verdict;
}

}  // namespace jitc::gate
