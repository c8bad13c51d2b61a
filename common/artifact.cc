#include "common/artifact.h"

#include <algorithm>
#include <concepts>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.h"

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

// Every field by its name in the file.
template <class M, class Visit>
void visit_fields(M& manifest, Visit visit) {
  visit("key", manifest.key);
  visit("request", manifest.request);
  visit("name", manifest.name);
  visit("origin_digest", manifest.origin_digest);
  visit("compiler", manifest.compiler);
  visit("compiler_wish", manifest.compiler_wish);
  visit("compiler_identity", manifest.compiler_identity);
  visit("triple", manifest.triple);
  visit("isa", manifest.isa);
  visit("isa_wish", manifest.isa_wish);
  visit("abi_tag", manifest.abi_tag);
  visit("share", manifest.share);
  visit("cse", manifest.cse);
  visit("emitter_version", manifest.emitter_version);
  visit("exact_flags", manifest.exact_flags);
  visit("headers", manifest.headers);
  visit("includes", manifest.includes);
  visit("origin_bytes", manifest.origin_bytes);
  visit("code_bytes", manifest.code_bytes);
  visit("calls", manifest.calls);
  visit("largest_function", manifest.largest_function);
  visit("nesting", manifest.nesting);
  visit("flags", manifest.flags);
  visit("flags_used", manifest.flags_used);
  visit("rungs", manifest.rungs);
  visit("functions", manifest.functions);
  visit("compile_seconds", manifest.compile_seconds);
  visit("peak_bytes", manifest.peak_bytes);
  visit("predicted_bytes", manifest.predicted_bytes);
  visit("attempts", manifest.attempts);
  visit("checked", manifest.checked);
  visit("log", manifest.log);
  visit("created", manifest.created);
}

// Those that only what a command left has.
template <class M, class Visit>
void visit_command_fields(M& manifest, Visit visit) {
  visit("kind", manifest.kind);
  visit("exit_status", manifest.exit_status);
  visit("output_bytes", manifest.output_bytes);
  visit("stdout_bytes", manifest.stdout_bytes);
  visit("stderr_bytes", manifest.stderr_bytes);
}

template <class T>
nlohmann::json json_of(const T& value) {
  return value;
}

nlohmann::json json_of(const std::vector<ExportedFunction>& functions) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& function : functions) list.push_back({{"name", function.name}, {"signature", function.signature}});
  return list;
}

nlohmann::json json_of(const std::vector<HeaderDigest>& headers) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& header : headers) list.push_back({{"name", header.name}, {"digest", header.digest}});
  return list;
}

// False, and the value as it was, for another type and for a number that does not fit.
struct Reader {
  static bool read(const nlohmann::json& item, std::string& value) {
    if (item.is_string()) value = item.get<std::string>();
    return item.is_string();
  }

  static bool read(const nlohmann::json& item, bool& value) {
    if (item.is_boolean()) value = item.get<bool>();
    return item.is_boolean();
  }

  static bool read(const nlohmann::json& item, double& value) {
    if (item.is_number()) value = item.get<double>();
    return item.is_number();
  }

  template <std::unsigned_integral Number>
  static bool read(const nlohmann::json& item, Number& value) {
    if (!item.is_number_unsigned() || !std::in_range<Number>(item.get<std::uint64_t>())) return false;
    value = static_cast<Number>(item.get<std::uint64_t>());
    return true;
  }

  static bool read(const nlohmann::json& item, ExportedFunction& function) {
    member(item, "name", function.name);
    member(item, "signature", function.signature);
    return item.is_object();
  }

  static bool read(const nlohmann::json& item, HeaderDigest& header) {
    member(item, "name", header.name);
    member(item, "digest", header.digest);
    return item.is_object();
  }

  template <class T>
  static bool read(const nlohmann::json& item, std::vector<T>& list) {
    if (!item.is_array()) return false;
    for (const auto& element : item)
      if (T value; read(element, value)) list.push_back(std::move(value));
    return true;
  }

  template <class T>
  static void member(const nlohmann::json& object, const char* name, T& value) {
    if (const auto it = object.find(name); it != object.end()) read(*it, value);
  }
};

}  // namespace

std::string to_json(const Manifest& manifest) {
  nlohmann::json object;
  const auto add = [&object](const char* name, const auto& value) { object[name] = json_of(value); };
  visit_fields(manifest, add);
  if (!manifest.kind.empty()) visit_command_fields(manifest, add);
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<Manifest> manifest_from_json(std::string_view text) {
  const auto object = parse_json(text);
  if (!object.is_object()) return corrupt("its manifest is not JSON");
  Manifest manifest;
  const auto read = [&object](const char* name, auto& value) { Reader::member(object, name, value); };
  visit_fields(manifest, read);
  visit_command_fields(manifest, read);
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
  if (file_size > kLargestArtifact) return corrupt("it is too large (" + std::to_string(file_size) + " bytes)");
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
  if ((view.isa_needed & kNotAModule) == 0 && !view.elf.starts_with(kElfMagic)) return corrupt("it holds no ELF image");
  view.manifest = bytes.substr(place->offset, place->size);
  return view;
}

}  // namespace jitc::common
