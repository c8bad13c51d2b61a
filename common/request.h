// What a caller asks for, and the two digests over it: the request digest (any rank computes it, asking nobody) and the
// artifact key (made with the compiler's identity and the resolved target).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/canary.h"
#include "common/digest.h"
#include "common/error.h"

namespace jitc::common {

struct Header {
  std::string name;  // as the #include directive spells it
  std::string text;
  bool operator==(const Header&) const = default;
};

struct Request {
  // Enters the request digest:
  std::string origin;              // C text as given (line ends are normalised in the digest)
  std::vector<std::string> flags;  // in order; -fPIC -shared are always there
  std::string compiler = "clang";  // "clang" (embedded), "gcc" or an allow-listed path
  std::string abi_tag;             // of the caller, e.g. PETSc version and sizes
  std::string share = "auto";      // 0, 1, auto
  std::string cse = "auto";        // 0, 1, auto
  std::uint32_t emitter_version = 0;
  std::string isa_wish = "common";  // common, native or a level name
  std::vector<Header> headers;
  bool exact_flags = false;

  // Not in any key:
  std::string code;       // what is compiled when another text stands for `origin`; empty: `origin`
  std::string isa_level;  // the level that `common` resolved to for the caller's job; empty: this machine's
  std::string name;       // for people
  std::string job;        // who shares a turn in the queue
  bool prefetch = false;
  bool no_cache = false;
  bool no_capsule = false;       // its failure leaves none, unless others wait who want one
  bool checked = false;          // nobody gets its module before it was checked, where that can be
  std::optional<Canary> canary;  // what the module must compute; none: it is not checked

  bool operator==(const Request&) const = default;
  std::string_view text() const { return code.empty() ? std::string_view(origin) : std::string_view(code); }
};

// Over typed, length-prefixed fields in a fixed order: docs/formats.md has every byte.
Digest request_digest(const Request& request);

// SHA-256 of a text as it counts in the request digest: CRLF is LF. Names a text in manifests.
Digest text_digest(std::string_view text);

// For a source text whose `code` the compiler refused: leaves `code` out, so that the text is compiled as given, and
// passes the cache by, since the daemon remembers that the key fails. The diagnostics are then those of the caller's
// text; should only what was made of it be wrong, nobody need know. False, and nothing done, after any other error and
// when the text as given was refused.
bool fall_back_to_origin(Request& request, const Error& error);

// Is `text` 0, 1 or auto?  Are name, flags, headers within bounds? The first thing that is wrong, as kUsage.
Result<void> check_request(const Request& request);

struct CompilerIdentity {
  std::string name;      // what a request says
  std::string path;      // empty: embedded; not in the key
  std::string identity;  // the embedded compiler's version, or the content digest of the binary and its helpers
};

struct Target {
  std::string triple;
  std::string isa;  // a level name, or cpu and features for a native build: "native" never enters as a word
};

// A request that does not change any more, and what is known of it. Copies share it.
class SharedRequest {
 public:
  SharedRequest(Request request) : known_(std::make_shared<Known>(std::move(request))) {}  // implicit

  const Request& operator*() const { return known_->request; }
  const Request* operator->() const { return &known_->request; }
  const Digest& digest() const { return known_->digest; }
  // What check_request says.
  const Result<void>& checked() const { return known_->checked; }

 private:
  struct Known {
    explicit Known(Request from) : request(std::move(from)) {}
    Request request;
    Digest digest = request_digest(request);
    Result<void> checked = check_request(request);
  };
  std::shared_ptr<const Known> known_;
};

// `includes`: content digest of the include roots, for a source that includes more than the built-in headers.
Digest artifact_key(const Digest& request, const CompilerIdentity& compiler, const Target& target,
                    const std::optional<Digest>& includes = std::nullopt);

}  // namespace jitc::common
