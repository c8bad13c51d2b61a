#include "common/digest.h"

// OpenSSL's plain SHA-256, which 3.0 calls deprecated: the EVP interface first reads openssl.cnf and loads providers,
// milliseconds in a process that only serves one hit.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace jitc::common {
namespace {

std::array<std::uint8_t, 8> little_endian(std::uint64_t value) {
  std::array<std::uint8_t, 8> bytes{};
  for (auto& byte : bytes) {
    byte = static_cast<std::uint8_t>(value);
    value >>= 8;
  }
  return bytes;
}

std::string_view view_of(const auto& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// These functions cannot fail; they return 1 for the sake of form.
SHA256_CTX* as_context(void* context) { return static_cast<SHA256_CTX*>(context); }

void update(void* context, std::string_view bytes) { SHA256_Update(as_context(context), bytes.data(), bytes.size()); }

Digest final_digest(SHA256_CTX* context) {
  Digest digest;
  SHA256_Final(digest.bytes.data(), context);
  return digest;
}

}  // namespace

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const auto byte : bytes) {
    text.push_back(kDigits[byte >> 4]);
    text.push_back(kDigits[byte & 15]);
  }
  return text;
}

std::optional<Digest> Digest::from_hex(std::string_view text) {
  Digest digest;
  if (text.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
    const int high = hex_value(text[2 * i]);
    const int low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    digest.bytes[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

Digest sha256(std::string_view bytes) {
  SHA256_CTX context;
  SHA256_Init(&context);
  update(&context, bytes);
  return final_digest(&context);
}

Hasher::Hasher(std::string_view domain) : context_(new SHA256_CTX) {
  SHA256_Init(as_context(context_));
  field('d', "domain", domain);
}

Hasher::~Hasher() { delete as_context(context_); }

void Hasher::field(char type, std::string_view name, std::string_view value) {
  update(context_, {&type, 1});
  update(context_, view_of(little_endian(name.size())));
  update(context_, name);
  update(context_, view_of(little_endian(value.size())));
  update(context_, value);
}

Hasher& Hasher::text(std::string_view name, std::string_view value) {
  field('t', name, value);
  return *this;
}

Hasher& Hasher::number(std::string_view name, std::uint64_t value) {
  field('n', name, view_of(little_endian(value)));
  return *this;
}

Hasher& Hasher::digest(std::string_view name, const Digest& value) {
  field('h', name, view_of(value.bytes));
  return *this;
}

Hasher& Hasher::list(std::string_view name, std::size_t count) {
  field('l', name, view_of(little_endian(count)));
  return *this;
}

Digest Hasher::finish() { return final_digest(as_context(context_)); }

}  // namespace jitc::common
