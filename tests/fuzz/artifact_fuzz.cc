// Artifact files, footers and manifests, mutated. Some of the files get a right digest again, since nothing behind that
// check would be reached otherwise.
#include <algorithm>
#include <string>
#include <string_view>

#include "common/artifact.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/json_change.h"

namespace {

using namespace jitc::common;
using jitc::fuzz::Mutator;

std::string good_artifact(const std::string& elf, const std::string& name) {
  Manifest manifest;
  manifest.key = sha256(name).hex();
  manifest.name = name;
  manifest.flags = {"-O3", "-DX=1"};
  manifest.headers = {{"a.h", sha256("a").hex()}};
  manifest.functions = {{"f", "void f(double *out)"}, {"g", "double g(void)"}};
  manifest.compile_seconds = 0.5;
  manifest.peak_bytes = 123456789012;
  return elf + make_tail(elf, manifest, sha256(name), 0b111);
}

std::vector<std::string> good_artifacts() {
  return {good_artifact("\177ELF", "small"), good_artifact("\177ELF" + std::string(700, 'x'), "other"),
          good_artifact("\177ELF" + std::string(4092, '\0'), "a page")};
}

void seal(std::string& bytes) {
  const Digest digest = sha256(std::string_view(bytes).substr(0, bytes.size() - 32));
  std::ranges::copy(digest.bytes, bytes.end() - 32);
}

// Sizes that add up, so that image and manifest are looked at; some only because the sum is beyond 64 bits.
void fit_sizes(std::string& bytes, Mutator& mutator) {
  const std::uint64_t body = bytes.size() - kFooterSize;
  std::uint64_t elf = mutator.below(8) == 0 ? ~std::uint64_t{0} - mutator.below(10'000) : mutator.below(body + 1);
  std::uint64_t manifest = body - elf;
  for (std::size_t i = 0; i < 8; ++i, elf >>= 8, manifest >>= 8) {
    bytes[bytes.size() - kFooterSize + 56 + i] = static_cast<char>(elf);
    bytes[bytes.size() - kFooterSize + 64 + i] = static_cast<char>(manifest);
  }
}

bool is_explained(const Error& error) { return error.kind == ErrorKind::kCorrupt && !error.message.empty(); }

std::string check_manifest(std::string_view text) {
  const auto manifest = manifest_from_json(text);
  if (!manifest) return is_explained(manifest.error()) ? "" : "a manifest refused without a reason";
  const std::string written = to_json(*manifest);
  const auto again = manifest_from_json(written);
  if (!again) return "a manifest that was read and written is none any more";
  return to_json(*again) == written ? "" : "a manifest changes when it is read and written again";
}

std::string check_place(std::string_view footer, std::uint64_t file_size) {
  const auto place = manifest_place(footer, file_size);
  if (!place) return is_explained(place.error()) ? "" : "a footer refused without a reason";
  const bool lies_inside = place->offset <= file_size && place->size <= file_size - place->offset &&
                           file_size - place->offset - place->size == kFooterSize;
  return lies_inside ? "" : "the manifest lies outside of its file";
}

std::string check_file(const std::string& bytes) {
  const auto view = verify_artifact(bytes);
  if (!view) return is_explained(view.error()) ? "" : "an artifact refused without a reason";
  std::string sealed = bytes;
  seal(sealed);
  if (sealed != bytes) return "a damaged artifact verifies";
  if (view->elf.data() != bytes.data() || view->manifest.data() != bytes.data() + view->elf.size() ||
      view->elf.size() + view->manifest.size() + kFooterSize != bytes.size())
    return "the parts do not make the file";
  return check_manifest(view->manifest);
}

std::string check(const std::string& input) {
  if (auto wrong = check_file(input); !wrong.empty()) return wrong;
  const std::size_t footer = input.size() - std::min(input.size(), kFooterSize);
  for (const std::uint64_t size : {std::uint64_t{input.size()}, std::uint64_t{footer}, ~std::uint64_t{100}})
    if (auto wrong = check_place(std::string_view(input).substr(footer), size); !wrong.empty()) return wrong;
  return check_manifest(input);  // the corpus has manifests by themselves too
}

void change(std::string& input, Mutator& mutator) {
  if (input.size() < kFooterSize || input.starts_with('{')) return jitc::fuzz::change_value(input, mutator);
  if (mutator.below(2) == 0) fit_sizes(input, mutator);
  seal(input);
}

}  // namespace

jitc::fuzz::Target jitc::fuzz::target() {
  auto corpus = good_artifacts();
  for (std::size_t i = 0; i < 3; ++i) corpus.emplace_back(verify_artifact(corpus[i])->manifest);
  auto words = jitc::fuzz::binary_numbers();
  for (const char* word : {"JITCART1",
                           "\177ELF",
                           "h\0\0\0",
                           "\"peak_bytes\": ",
                           "\"flags\": [",
                           "\"functions\": [{",
                           "\"name\": \"",
                           "\"attempts\": ",
                           "1e308",
                           "-1",
                           "18446744073709551616",
                           "4294967296",
                           "true",
                           "null",
                           "{",
                           "}",
                           "[",
                           "]",
                           ",",
                           "\\u0000",
                           "\\ud800",
                           "\xff",
                           "0.1"})
    words.emplace_back(word);
  return {.name = "artifact_fuzz",
          .corpus = std::move(corpus),
          .words = std::move(words),
          .check = check,
          .change = change};
}
