#include "client/cli/key_fields.h"

#include <algorithm>
#include <array>
#include <utility>

namespace jitc::cli {
namespace {

using Values = std::optional<std::vector<std::string>>;

Values one(std::optional<std::string> value) {
  if (!value) return std::nullopt;
  return std::vector<std::string>{std::move(*value)};
}
// Of a manifest, whose absent fields are empty.
Values known(const std::string& value) { return value.empty() ? Values() : one(value); }

std::string text_note(std::uint64_t bytes) { return std::to_string(bytes) + " bytes"; }

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const auto& value : values) text += (text.empty() ? "" : " ") + value;
  return text.empty() ? "(none)" : text;
}

// What `from` has more often than `other`, in its order.
std::vector<std::string> only_in(const std::vector<std::string>& from, std::vector<std::string> other) {
  std::vector<std::string> only;
  for (const auto& value : from) {
    const auto it = std::ranges::find(other, value);
    if (it == other.end()) {
      only.push_back(value);
    } else {
      other.erase(it);
    }
  }
  return only;
}

// A field that differs because another one does says nothing of its own.
struct Follows {
  std::string_view field, of;
};
constexpr auto kFollows = std::to_array<Follows>({{"compiler_identity", "compiler"},
                                                  {"isa", "isa_wish"},
                                                  {"emitter_version", "share"},
                                                  {"emitter_version", "text"},
                                                  {"emitter_version", "flags"}});

bool has(const std::vector<FieldDifference>& differences, std::string_view name) {
  return std::ranges::any_of(differences, [name](const auto& difference) { return difference.name == name; });
}

std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

KeyFields fields_of(const common::Request& request, const KeyTerms& terms) {
  std::vector<std::string> headers;
  for (const auto& header : request.headers)
    headers.push_back(header.name + "=" + common::text_digest(header.text).hex());
  return {{"text", one(common::text_digest(request.origin).hex()), text_note(request.origin.size())},
          {"flags", request.flags, {}},
          {"compiler", one(request.compiler), {}},
          {"abi_tag", one(request.abi_tag), {}},
          {"share", one(request.share), {}},
          {"cse", one(request.cse), {}},
          {"emitter_version", one(std::to_string(request.emitter_version)), {}},
          {"isa_wish", one(request.isa_wish), {}},
          {"headers", std::move(headers), {}},
          {"exact_flags", one(request.exact_flags ? "1" : "0"), {}},
          {"compiler_identity", one(terms.compiler_identity), {}},
          {"triple", one(terms.triple), {}},
          {"isa", one(terms.isa), {}},
          {"includes", one(terms.includes), {}}};
}

KeyFields fields_of(const common::Manifest& manifest) {
  std::vector<std::string> headers;
  for (const auto& header : manifest.headers) headers.push_back(header.name + "=" + header.digest);
  const bool is_complete = !manifest.origin_digest.empty();  // written since manifests have all fields
  const auto since = [is_complete](Values values) { return is_complete ? std::move(values) : Values(); };
  const std::string& compiler = manifest.compiler_wish.empty() ? manifest.compiler : manifest.compiler_wish;
  return {{"text", known(manifest.origin_digest), text_note(manifest.origin_bytes)},
          {"flags", manifest.flags, {}},
          {"compiler", known(compiler), {}},
          {"abi_tag", one(manifest.abi_tag), {}},
          {"share", known(manifest.share), {}},
          {"cse", known(manifest.cse), {}},
          {"emitter_version", since(one(std::to_string(manifest.emitter_version))), {}},
          {"isa_wish", known(manifest.isa_wish), {}},
          {"headers", since(std::move(headers)), {}},
          {"exact_flags", since(one(manifest.exact_flags ? "1" : "0")), {}},
          {"compiler_identity", known(manifest.compiler_identity), {}},
          {"triple", known(manifest.triple), {}},
          {"isa", known(manifest.isa), {}},
          {"includes", since(one(manifest.includes)), {}}};
}

std::string shown(const KeyField& field) {
  std::string text = "(not known)";
  if (field.values) text = joined(*field.values);
  if (text.empty()) text = "(none)";
  return field.note.empty() ? text : text + ", " + field.note;
}

std::vector<FieldDifference> differences(const KeyFields& here, const KeyFields& there) {
  std::vector<FieldDifference> found;
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i) {
    const auto &a = here[i].values, &b = there[i].values;
    if (!a || !b || *a == *b) continue;
    const auto only_here = only_in(*a, *b), only_there = only_in(*b, *a);
    const bool reordered = only_here.empty() && only_there.empty();
    found.push_back({here[i].name, joined(reordered ? *a : only_here), joined(reordered ? *b : only_there)});
    if (here[i].name == "text") found.back() = {here[i].name, shown(here[i]), shown(there[i])};
  }
  for (auto& difference : found)
    difference.follows = std::ranges::any_of(
        kFollows, [&](const Follows& one) { return one.field == difference.name && has(found, one.of); });
  return found;
}

std::size_t distance(const KeyFields& here, const KeyFields& there) {
  const auto found = differences(here, there);
  std::size_t count = static_cast<std::size_t>(std::ranges::count(found, false, &FieldDifference::follows));
  for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
    count += here[i].values && !there[i].values ? 1 : 0;
  return count;
}

std::optional<LineDifference> first_difference(std::string_view here, std::string_view there) {
  for (std::size_t line = 1; !here.empty() || !there.empty(); ++line) {
    const bool ends_here = here.empty(), ends_there = there.empty();
    const std::string_view a = next_line(here), b = next_line(there);
    if (a != b || ends_here != ends_there)
      return LineDifference{line, ends_here ? "(the text ends)" : std::string(a),
                            ends_there ? "(the text ends)" : std::string(b)};
  }
  return std::nullopt;
}

}  // namespace jitc::cli
