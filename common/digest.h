// SHA-256 over length-prefixed, typed fields: no two different field lists give the same bytes. A field is one byte for
// its type (d domain, t text, n number, h digest, l list), the name's length, the name, the value's length, the value;
// lengths, numbers and counts are 8 bytes, little endian. docs/formats.md has the lists of fields.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace jitc::common {

struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;  // 64 lower-case digits
  static std::optional<Digest> from_hex(std::string_view text);
};

// Plain SHA-256 of bytes.
Digest sha256(std::string_view bytes);

class Hasher {
 public:
  // `domain` separates kinds of digests (request, artifact key, manifest ...).
  explicit Hasher(std::string_view domain);
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& text(std::string_view name, std::string_view value);
  Hasher& number(std::string_view name, std::uint64_t value);
  Hasher& digest(std::string_view name, const Digest& value);
  // Opens a list of `count` fields; the fields follow.
  Hasher& list(std::string_view name, std::size_t count);
  Digest finish();

 private:
  void field(char type, std::string_view name, std::string_view value);
  void* context_;  // SHA256_CTX
};

}  // namespace jitc::common

template <>
struct std::hash<jitc::common::Digest> {
  std::size_t operator()(const jitc::common::Digest& digest) const noexcept {
    std::size_t value = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) value = value << 8 | digest.bytes[i];
    return value;
  }
};
