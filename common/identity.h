// The identity file: what the daemon tells those who never ask it. With it the root and the command compute artifact
// keys and read the store without any RPC. Written atomically (temp file, rename) into the runtime directory.
// docs/formats.md has its members.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/error.h"
#include "common/isa.h"
#include "common/request.h"
#include "common/store_trust.h"

namespace jitc::common {

struct Identity {
  std::string version;  // the daemon's
  std::int64_t pid = 0;
  std::vector<CompilerIdentity> compilers;  // the first is the embedded one
  std::string triple;
  std::string native_isa;  // cpu and features, for isa_wish native
  std::string store;
  bool store_is_shared = false;  // declared as a group's: what others put into stores counts too
  std::vector<std::string> read_only_stores;
  std::map<std::string, uid_t> store_owners;  // of those read-only ones that were there: whom the daemon believes
  std::vector<std::pair<std::string, std::string>> include_roots;  // path, content digest
  const CompilerIdentity* compiler(std::string_view name) const;   // by name or path
};

// What the daemon reads, in its order: the read-only stores, then the writable one, if there is one.
std::vector<StoreLayer> store_layers(const Identity& identity);

inline constexpr const char* kIdentityFile = "identity.json";

Result<void> write_identity(const std::string& runtime_dir, const Identity& identity);
// Believes only a regular file of this user's (or root's) own in a directory that nobody else can write: it says which
// code is loaded. kRefused for another's, kUnreachable without one, kVersionSkew for one that cannot be understood.
Result<Identity> read_identity(const std::string& runtime_dir);

const char* build_version();  // of this build: the project's

// May the store be read under this identity's key without asking the daemon? Only when nothing that enters the key can
// have changed since the daemon wrote it: the embedded compiler of the same build, and no include roots. What external
// compilers and headers are now, only the daemon finds out.
bool may_hit_directly(const Request& request, const Identity& identity);
// Nothing of the machine's files enters the key: the embedded compiler, and no include roots.
bool is_self_contained(const Request& request, const Identity& identity);

// Is it made for the CPU of the node that compiles it, so that another node's would be other code?
bool wants_native(const Request& request);
// Does its code depend on the node that compiles it, as the request says: native code, another compiler than the
// embedded one, or directories of headers? Another node may have none of it, or make other code.
bool is_of_a_node(const Request& request);

// The artifact key of a request on this node: resolves the wish for the ISA (common: the request's isa_level, else this
// CPU's level) and the compiler's name. kRefused for a compiler that the daemon does not offer, and when nobody knows
// what would be compiled: an identity or an include root's digest is empty.
struct ResolvedRequest {
  Digest request;
  Digest key;
  CompilerIdentity compiler;
  Target target;
  std::optional<Digest> includes;  // over the include roots, when there are any
  IsaMask isa_needed = 0;
};
Result<ResolvedRequest> resolve(const Request& request, const Identity& identity);

}  // namespace jitc::common
