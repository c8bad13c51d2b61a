// Archives of artifacts, mutated: what is imported is a whole artifact under its key, whatever else is told with its
// reason, and what was imported can be exported and is known when it comes again.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/artifact_archive.h"
#include "client/cli/tar.h"
#include "common/files.h"
#include "common/request.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/temporary_directory.h"

namespace {

using namespace jitc;
using cli::ImportedEntry;
using cli::kTarBlock;
using common::Digest;
using common::ErrorKind;
using fuzz::Mutator;

// There are few, so that the store does not grow with the number of inputs.
constexpr std::size_t kArtifacts = 8;

common::Manifest manifest_number(std::size_t number) {
  common::Manifest manifest;
  manifest.request = common::sha256("request " + std::to_string(number)).hex();
  manifest.compiler = "clang";
  manifest.compiler_identity = "a compiler";
  manifest.triple = "x86_64-test";
  manifest.isa = "x86-64-v2";
  manifest.key = common::artifact_key(*Digest::from_hex(manifest.request), {"clang", {}, "a compiler"},
                                      {"x86_64-test", "x86-64-v2"})
                     .hex();
  return manifest;
}

std::string artifact_of(const common::Manifest& manifest, const Digest& key) {
  const std::string elf = "\177ELF" + std::string(manifest.compile_seconds > 0 ? 500 : 12, 'x');
  return elf + common::make_tail(elf, manifest, key, 1);
}

// A regular file of any name.
std::string file_named(std::string_view name, const std::string& content) {
  return cli::tar_header(name, content.size()) + content + std::string(cli::tar_padding(content.size()), '\0');
}

std::string artifact_number(std::size_t number) {
  const common::Manifest manifest = manifest_number(number);
  return artifact_of(manifest, *Digest::from_hex(manifest.key));
}

// Do the fields of its manifest make this key? libFuzzer finds right digests by itself, but no other key's.
bool leads_to(const common::Manifest& manifest, const Digest& key) {
  const auto request = Digest::from_hex(manifest.request), includes = Digest::from_hex(manifest.includes);
  return request && manifest.key == key.hex() &&
         common::artifact_key(*request, {manifest.compiler, {}, manifest.compiler_identity},
                              {manifest.triple, manifest.isa}, includes) == key;
}

struct Import {
  common::Result<void> done;
  std::vector<ImportedEntry> told;
};

Import import(std::string_view archive, store::Store& store) {
  Import import;
  const cli::Supply supply = [&archive](char* buffer, std::size_t most) -> common::Result<std::size_t> {
    const std::size_t count = archive.copy(buffer, std::min<std::size_t>(most, 700));  // never all at once
    archive.remove_prefix(count);
    return count;
  };
  import.done =
      cli::import_artifacts(supply, store, [&import](const ImportedEntry& entry) { import.told.push_back(entry); });
  return import;
}

bool is_explained(const common::Error& error) {
  return (error.kind == ErrorKind::kRefused || error.kind == ErrorKind::kCorrupt) && !error.message.empty();
}

// What a store holds under this path goes into an archive.
std::string check_entry(const store::Store& store, const std::string& path, std::string& archive) {
  const std::string bytes = common::read_file(path).value_or("");
  const auto view = common::verify_artifact(bytes);
  const auto manifest = view ? common::manifest_from_json(view->manifest) : std::unexpected(view.error());
  if (!manifest || !leads_to(*manifest, view->key)) return "an artifact was imported that is none: " + path;
  if (path != common::artifact_path(store.directory(), view->key)) return "an artifact under another's name: " + path;
  const cli::Sink sink = [&archive](std::string_view piece) -> common::Result<void> {
    archive += piece;
    return {};
  };
  return cli::write_entry(sink, view->key, bytes) ? "" : "an artifact that cannot be exported";
}

std::string check(store::Store& store, const std::string& input) {
  const Import first = import(input, store);
  if (!first.done && !is_explained(first.done.error())) return "failed: " + common::to_line(first.done.error());
  std::string archive;
  std::size_t imported = 0;
  for (const ImportedEntry& entry : first.told) {
    if (entry.state == ImportedEntry::State::kRefused) {
      if (!is_explained(entry.reason) || !entry.path.empty()) return "refused: " + common::to_line(entry.reason);
      continue;
    }
    if (auto wrong = check_entry(store, entry.path, archive); !wrong.empty()) return wrong;
    ++imported;
  }
  const Import second = import(archive + cli::tar_end(), store);
  if (!second.done) return "what was exported is refused: " + common::to_line(second.done.error());
  const bool all_present = std::ranges::all_of(
      second.told, [](const ImportedEntry& entry) { return entry.state == ImportedEntry::State::kPresent; });
  return all_present && second.told.size() == imported ? "" : "what was exported is not what was imported";
}

// ---- changes
// ----------------------------------------------------------------------------------------------------------

// Makes the sum in a header right.
void sum(std::string& archive, std::size_t header) {
  constexpr std::size_t kAt = 148, kSize = 8;
  archive.replace(header + kAt, kSize, kSize, ' ');
  unsigned sum = 0;
  for (std::size_t at = 0; at < kTarBlock; ++at) sum += static_cast<unsigned char>(archive[header + at]);
  std::array<char, kSize> digits{};
  std::snprintf(digits.data(), digits.size(), "%06o", sum);
  archive.replace(header + kAt, kSize, digits.data(), kSize);
}

std::string any_entry(Mutator& mutator) {
  common::Manifest manifest = manifest_number(mutator.below(kArtifacts));
  const Digest key = *Digest::from_hex(manifest_number(mutator.below(2 * kArtifacts)).key);
  if (mutator.below(4) == 0) manifest.key = key.hex();
  if (mutator.below(4) == 0) manifest.includes = manifest.request;
  if (mutator.below(2) == 0) manifest.compile_seconds = 1;
  constexpr std::array kNames = {"v1/aa/name.so", "../name", "/name", "a/../b", "", ".."};
  return file_named(kNames[mutator.below(kNames.size())], artifact_of(manifest, key));
}

void change(std::string& input, Mutator& mutator) {
  if (input.size() < kTarBlock) return mutator.change(input);
  const std::size_t block = mutator.below(input.size() / kTarBlock) * kTarBlock;
  constexpr std::array kTypes = {'0', '\0', '1', '2', '5', 'x', 'g', 'L'};
  constexpr std::size_t kSizeAt = 124, kSizeDigits = 11, kTypeAt = 156, kPrefixAt = 345;
  switch (mutator.below(6)) {
    case 0: {
      std::array<char, kSizeDigits + 1> digits{};
      const std::size_t size = mutator.below(4) == 0 ? ~std::size_t{0} >> (33 + mutator.below(8)) : mutator.below(3000);
      std::snprintf(digits.data(), digits.size(), "%011zo", size);
      input.replace(block + kSizeAt, kSizeDigits, digits.data(), kSizeDigits);
      return sum(input, block);
    }
    case 1:
      input[block + kTypeAt] = kTypes[mutator.below(kTypes.size())];
      return sum(input, block);
    case 2:
      input.replace(block + kPrefixAt, 4, mutator.below(2) == 0 ? "/../" : "aa/b");
      return sum(input, block);
    case 3:
      input[block + mutator.below(kTarBlock)] = static_cast<char>(mutator.below(256));
      return sum(input, block);
    case 4:
      input.erase(block, kTarBlock);
      return;
    default:
      input.insert(block, any_entry(mutator));
      return;
  }
}

std::vector<std::string> archives() {
  const std::string one = file_named("v1/aa/one.so", artifact_number(0));
  const std::string two = file_named("two", artifact_number(1)) + file_named("three", artifact_number(2));
  std::string directory = cli::tar_header("v1/aa/", 0);
  directory[156] = '5';
  sum(directory, 0);
  return {one + cli::tar_end(), directory + one + two + cli::tar_end(), two + file_named("text", "no artifact"),
          cli::tar_end()};
}

}  // namespace

fuzz::Target fuzz::target() {
  static const testing::TemporaryDirectory directory;
  static const auto store = store::Store::open({.directory = directory.path() + "/store"});
  if (!store) {
    std::fprintf(stderr, "archive_fuzz: %s\n", common::to_line(store.error()).c_str());
    return {};
  }
  auto words = binary_numbers();
  for (const char* word :
       {"ustar", "ustar  ", "0000000", "77777777777", "        ", "JITCART1", "../", "/", "PaxHeader"})
    words.emplace_back(word);
  words.emplace_back(kTarBlock, '\0');
  return {.name = "archive_fuzz",
          .corpus = archives(),
          .words = std::move(words),
          .check = [](const std::string& input) { return check(**store, input); },
          .change = change};
}
