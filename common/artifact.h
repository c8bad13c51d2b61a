// The artifact file: one file, never two. docs/formats.md has every field of it, and what makes a new version.
//
//   ELF shared object      elf_size bytes, offset 0; ld.so ignores what follows
//   manifest               manifest_size bytes of JSON text, for people and tools
//   footer                 kFooterSize bytes, little endian:
//     0   8  magic "JITCART1"
//     8   4  format version (1)
//     12  4  footer size (kFooterSize)
//     16  32 artifact key
//     48  8  ISA mask needed (common/isa.h)
//     56  8  elf_size
//     64  8  manifest_size
//     72  32 SHA-256 of every byte before this field
//
// The footer holds all that a loader needs. Nobody loads bytes whose footer does not verify.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/isa.h"

namespace jitc::common {

inline constexpr std::size_t kFooterSize = 104;
inline constexpr std::uint32_t kArtifactFormat = 1;
inline constexpr std::uint64_t kLargestArtifact = std::uint64_t{1} << 30;  // what has more bytes is none

// Of what a command left; and of one whose inputs were others in the end than its caller saw.
inline constexpr const char* kCommandKind = "command";
inline constexpr const char* kOutdatedCommandKind = "outdated command";

struct ExportedFunction {
  std::string name;
  std::string signature;
};

struct HeaderDigest {
  std::string name;
  std::string digest;  // text_digest(), 64 hex digits
};

// What a file does not say, or says in another type, keeps its default: readers take manifests of every version.
struct Manifest {
  std::string key;                      // 64 hex digits
  std::string kind;                     // "command": what a compiler's command left (docs/cc.md); empty: a module
  std::string request;                  // request digest, 64 hex digits
  std::string name;                     // the first caller's name for it
  std::string origin_digest;            // text_digest() of the text that the request digest is over, 64 hex digits
  std::string compiler, compiler_wish;  // its name; as the request says
  std::string compiler_identity;
  std::string triple;
  std::string isa;
  std::string isa_wish;
  std::string abi_tag;
  std::string share, cse;  // the settings
  std::uint32_t emitter_version = 0;
  bool exact_flags = false;
  std::vector<HeaderDigest> headers;   // that travelled with the request
  std::string includes;                // digest over the include roots, 64 hex digits; empty: there were none
  std::uint64_t origin_bytes = 0;      // of the text that the request digest is over
  std::uint64_t code_bytes = 0;        // of the text made of it that was compiled; 0: the former was
  std::uint64_t calls = 0;             // what the scan of that text counted (common/flags.h), for predictions
  std::uint64_t largest_function = 0;  // in bytes
  std::uint64_t nesting = 0;
  std::vector<std::string> flags;       // asked for
  std::vector<std::string> flags_used;  // given to the compiler in the end
  std::vector<std::string> rungs;       // what the ladder did
  std::vector<ExportedFunction> functions;
  double compile_seconds = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t predicted_bytes = 0;
  std::uint32_t attempts = 1;
  bool checked = false;  // it was called and compared before it was published (docs/canary.md)
  std::string log;
  std::uint32_t exit_status = 0;                                       // of a command
  std::uint64_t output_bytes = 0, stdout_bytes = 0, stderr_bytes = 0;  // the parts of its image, in this order
  std::string created;  // ISO 8601, UTC; for people only, decides nothing
};
std::string to_json(const Manifest& manifest);
Result<Manifest> manifest_from_json(std::string_view text);

// Manifest and footer to append to an ELF image of these bytes.
std::string make_tail(std::string_view elf, const Manifest& manifest, const Digest& key, IsaMask isa_needed);

// What a verified file says. Views into the bytes that were verified.
struct ArtifactView {
  Digest key;
  IsaMask isa_needed = 0;
  std::string_view elf;
  std::string_view manifest;
  Digest digest;  // the footer's: SHA-256 of every byte before it; names the file's bytes
};
// kCorrupt with the reason (too short, wrong magic, unknown version, sizes, digest, not an ELF image).
Result<ArtifactView> verify_artifact(std::string_view bytes);

// Where the manifest lies in a file of `file_size` bytes that ends with `footer` (kFooterSize bytes): for listings,
// which need not read whole files. Nothing is verified but the footer's form; nobody loads a file on this word.
struct ManifestPlace {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
Result<ManifestPlace> manifest_place(std::string_view footer, std::uint64_t file_size);

}  // namespace jitc::common
