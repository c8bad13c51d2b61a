#include "common/artifact.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace jitc::common {
namespace {

constexpr std::string_view kMagic = "JITCART1";
constexpr std::string_view kElfMagic = "\177ELF";
constexpr std::size_t kDigestOffset = kFooterSize - 32;

template <class Unsigned>
void put(std::string& out, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out.push_back(static_cast<char>(value >> (8 * i)));
}

template <class Unsigned>
Unsigned get(std::string_view from, std::size_t offset) {
  Unsigned value = 0;
  for (std::size_t i = sizeof value; i-- > 0;)
    value = static_cast<Unsigned>(value << 8 | static_cast<unsigned char>(from[offset + i]));
  return value;
}

Digest digest_at(std::string_view from, std::size_t offset) {
  Digest digest;
  std::memcpy(digest.bytes.data(), from.data() + offset, digest.bytes.size());
  return digest;
}

std::string_view view_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

std::unexpected<Error> corrupt(std::string message) {
  return fail(ErrorKind::kCorrupt, std::move(message), "artifact", "it is removed and built again on the next request");
}

nlohmann::json functions_json(const std::vector<ExportedFunction>& functions) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& function : functions) list.push_back({{"name", function.name}, {"signature", function.signature}});
  return list;
}

template <class T>
void read(const nlohmann::json& object, const char* key, T& value) {
  const auto it = object.find(key);
  if (it == object.end()) return;
  if constexpr (std::is_same_v<T, std::string>) {
    if (it->is_string()) value = it->get<std::string>();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (it->is_number()) value = it->get<T>();
  } else if (it->is_array()) {
    for (const auto& item : *it)
      if (item.is_string()) value.push_back(item.get<std::string>());
  }
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  const nlohmann::json object = {{"key", manifest.key},
                                 {"request", manifest.request},
                                 {"name", manifest.name},
                                 {"compiler", manifest.compiler},
                                 {"compiler_identity", manifest.compiler_identity},
                                 {"triple", manifest.triple},
                                 {"isa", manifest.isa},
                                 {"abi_tag", manifest.abi_tag},
                                 {"share", manifest.share},
                                 {"origin_bytes", manifest.origin_bytes},
                                 {"code_bytes", manifest.code_bytes},
                                 {"calls", manifest.calls},
                                 {"largest_function", manifest.largest_function},
                                 {"nesting", manifest.nesting},
                                 {"flags", manifest.flags},
                                 {"flags_used", manifest.flags_used},
                                 {"rungs", manifest.rungs},
                                 {"functions", functions_json(manifest.functions)},
                                 {"compile_seconds", manifest.compile_seconds},
                                 {"peak_bytes", manifest.peak_bytes},
                                 {"predicted_bytes", manifest.predicted_bytes},
                                 {"attempts", manifest.attempts},
                                 {"log", manifest.log},
                                 {"created", manifest.created}};
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Manifest> manifest_from_json(std::string_view text) {
  const auto object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return corrupt("its manifest is not JSON");
  Manifest manifest;
  read(object, "key", manifest.key);
  read(object, "request", manifest.request);
  read(object, "name", manifest.name);
  read(object, "compiler", manifest.compiler);
  read(object, "compiler_identity", manifest.compiler_identity);
  read(object, "triple", manifest.triple);
  read(object, "isa", manifest.isa);
  read(object, "abi_tag", manifest.abi_tag);
  read(object, "share", manifest.share);
  read(object, "origin_bytes", manifest.origin_bytes);
  read(object, "code_bytes", manifest.code_bytes);
  read(object, "calls", manifest.calls);
  read(object, "largest_function", manifest.largest_function);
  read(object, "nesting", manifest.nesting);
  read(object, "flags", manifest.flags);
  read(object, "flags_used", manifest.flags_used);
  read(object, "rungs", manifest.rungs);
  if (const auto functions = object.find("functions"); functions != object.end() && functions->is_array())
    for (const auto& item : *functions) {
      ExportedFunction function;
      if (item.is_object()) {
        read(item, "name", function.name);
        read(item, "signature", function.signature);
      }
      manifest.functions.push_back(std::move(function));
    }
  read(object, "compile_seconds", manifest.compile_seconds);
  read(object, "peak_bytes", manifest.peak_bytes);
  read(object, "predicted_bytes", manifest.predicted_bytes);
  read(object, "attempts", manifest.attempts);
  read(object, "log", manifest.log);
  read(object, "created", manifest.created);
  return manifest;
}

std::string make_tail(std::string_view elf, const Manifest& manifest, const Digest& key, IsaMask isa_needed) {
  std::string tail = to_json(manifest);
  const std::size_t manifest_size = tail.size();
  tail.append(kMagic);
  put(tail, kArtifactFormat);
  put(tail, static_cast<std::uint32_t>(kFooterSize));
  tail.append(view_of(key));
  put(tail, isa_needed);
  put(tail, static_cast<std::uint64_t>(elf.size()));
  put(tail, static_cast<std::uint64_t>(manifest_size));
  std::string whole;
  whole.reserve(elf.size() + tail.size());
  whole.append(elf).append(tail);
  tail.append(view_of(sha256(whole)));
  return tail;
}

Result<ManifestPlace> manifest_place(std::string_view footer, std::uint64_t file_size) {
  if (file_size < kFooterSize || footer.size() != kFooterSize)
    return corrupt("it is cut short (" + std::to_string(file_size) + " bytes)");
  if (!footer.starts_with(kMagic)) return corrupt("it has no footer (cut short, or not an artifact)");
  if (const auto version = get<std::uint32_t>(footer, 8); version != kArtifactFormat)
    return corrupt("its format version is " + std::to_string(version) + ", this build reads " +
                   std::to_string(kArtifactFormat));
  if (get<std::uint32_t>(footer, 12) != kFooterSize) return corrupt("its footer's size is wrong");
  const ManifestPlace place{get<std::uint64_t>(footer, 56), get<std::uint64_t>(footer, 64)};
  const std::uint64_t body = file_size - kFooterSize;
  if (place.offset > body || place.size != body - place.offset) return corrupt("its sizes do not add up");
  return place;
}

Result<ArtifactView> verify_artifact(std::string_view bytes) {
  const std::string_view footer = bytes.substr(bytes.size() - std::min(bytes.size(), kFooterSize));
  const auto place = manifest_place(footer, bytes.size());
  if (!place) return std::unexpected(place.error());
  ArtifactView view;
  view.key = digest_at(footer, 16);
  view.isa_needed = get<std::uint64_t>(footer, 48);
  view.digest = digest_at(footer, kDigestOffset);
  if (sha256(bytes.substr(0, bytes.size() - 32)) != view.digest) return corrupt("its digest does not match its bytes");
  view.elf = bytes.substr(0, place->offset);
  if (!view.elf.starts_with(kElfMagic)) return corrupt("it holds no ELF image");
  view.manifest = bytes.substr(place->offset, place->size);
  return view;
}

}  // namespace jitc::common
