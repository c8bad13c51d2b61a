#include "common/identity.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/files.h"
#include "common/json.h"

namespace jitc::common {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;

std::unexpected<Error> unreadable(const std::string& path) {
  return fail(ErrorKind::kVersionSkew, "the daemon's identity file cannot be understood", path,
              "restart the daemon: 'jitc daemon stop', then 'jitc daemon start'");
}

// Missing or mistyped members are a file of another version.
template <class T>
bool read(const nlohmann::json& object, const char* key, T& value) {
  const auto it = object.find(key);
  if (it == object.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!it->is_string()) return false;
  } else if (!it->is_number_integer()) {
    return false;
  }
  value = it->get<T>();
  return true;
}

bool read_compilers(const nlohmann::json& object, std::vector<CompilerIdentity>& compilers) {
  const auto it = object.find("compilers");
  if (it == object.end() || !it->is_array()) return false;
  for (const auto& item : *it) {
    CompilerIdentity compiler;
    if (!item.is_object() || !read(item, "name", compiler.name) || !read(item, "path", compiler.path) ||
        !read(item, "identity", compiler.identity))
      return false;
    compilers.push_back(std::move(compiler));
  }
  return true;
}

bool read_stores(const nlohmann::json& object, std::vector<std::string>& stores) {
  const auto it = object.find("read_only_stores");
  if (it == object.end() || !it->is_array()) return false;
  for (const auto& item : *it) {
    if (!item.is_string()) return false;
    stores.push_back(item.get<std::string>());
  }
  return true;
}

// Files from before they were written down have no such member.
bool read_owners(const nlohmann::json& object, std::map<std::string, uid_t>& owners) {
  const auto it = object.find("store_owners");
  if (it == object.end()) return true;
  if (!it->is_object()) return false;
  for (const auto& [store, owner] : it->items()) {
    if (!owner.is_number_unsigned() || !std::in_range<uid_t>(owner.get<std::uint64_t>())) return false;
    owners[store] = owner.get<uid_t>();
  }
  return true;
}

// Files from before stores could be a group's have no such member.
bool read_shared(const nlohmann::json& object, bool& shared) {
  const auto it = object.find("store_is_shared");
  if (it == object.end()) return true;
  if (!it->is_boolean()) return false;
  shared = it->get<bool>();
  return true;
}

bool read_roots(const nlohmann::json& object, std::vector<std::pair<std::string, std::string>>& roots) {
  const auto it = object.find("include_roots");
  if (it == object.end() || !it->is_array()) return false;
  for (const auto& item : *it) {
    std::pair<std::string, std::string> root;
    if (!item.is_object() || !read(item, "path", root.first) || !read(item, "digest", root.second)) return false;
    roots.push_back(std::move(root));
  }
  return true;
}

Result<std::string> read_own_file(const std::string& path) {
  struct stat status{};
  const Fd fd = open_regular(path, status);
  if (!fd) {
    if (errno == ELOOP) return fail(ErrorKind::kRefused, "not a regular file", path, "remove it");
    return fail(ErrorKind::kUnreachable, "no daemon has left its identity file", path,
                "start one with 'jitc daemon start'");
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return fail(ErrorKind::kRefused, "belongs to uid " + std::to_string(status.st_uid) + ", not to this user", path,
                "use a runtime directory of your own");
  return read_all(fd.get(), path, kMostBytes);
}

bool has_flag(const Request& request, std::string_view flag) {
  return std::ranges::find(request.flags, flag) != request.flags.end();
}

Result<void> check_known(const CompilerIdentity& compiler, const Identity& identity) {
  const auto unknown = [](std::string thing) {
    return fail(ErrorKind::kRefused, "parts of it cannot be read, so that nothing made with it can be told apart",
                std::move(thing), "let this user read all of it, or take it out of the daemon's settings");
  };
  if (compiler.identity.empty()) return unknown("compiler " + compiler.name);
  for (const auto& [path, digest] : identity.include_roots)
    if (digest.empty()) return unknown("include root " + path);
  return {};
}

}  // namespace

const CompilerIdentity* Identity::compiler(std::string_view name) const {
  const auto it = std::ranges::find_if(compilers, [name](const CompilerIdentity& compiler) {
    return compiler.name == name || (!compiler.path.empty() && compiler.path == name);
  });
  return it == compilers.end() ? nullptr : &*it;
}

std::vector<StoreLayer> store_layers(const Identity& identity) {
  std::vector<StoreLayer> layers;
  for (const std::string& store : identity.read_only_stores) {
    layers.push_back({store, identity.store_is_shared ? Trust::kEverybody : Trust::kOwner, /*is_read_only=*/true});
    if (const auto owner = identity.store_owners.find(store); owner != identity.store_owners.end())
      layers.back().owner = owner->second;
  }
  if (!identity.store.empty())
    layers.push_back({identity.store, identity.store_is_shared ? Trust::kEverybody : Trust::kOwn});
  return layers;
}

Result<void> write_identity(const std::string& runtime_dir, const Identity& identity) {
  nlohmann::json compilers = nlohmann::json::array();
  for (const auto& compiler : identity.compilers)
    compilers.push_back({{"name", compiler.name}, {"path", compiler.path}, {"identity", compiler.identity}});
  nlohmann::json roots = nlohmann::json::array();
  for (const auto& [path, digest] : identity.include_roots) roots.push_back({{"path", path}, {"digest", digest}});
  const nlohmann::json object = {{"version", identity.version},
                                 {"pid", identity.pid},
                                 {"compilers", std::move(compilers)},
                                 {"triple", identity.triple},
                                 {"native_isa", identity.native_isa},
                                 {"store", identity.store},
                                 {"store_is_shared", identity.store_is_shared},
                                 {"read_only_stores", identity.read_only_stores},
                                 {"store_owners", identity.store_owners},
                                 {"include_roots", std::move(roots)}};
  // What is no UTF-8 (a path, which readers then do not find) must not keep the daemon from serving.
  const std::string text = object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string path = runtime_dir + "/" + kIdentityFile;
  const std::string temporary = path + "." + std::to_string(::getpid());
  const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be written", temporary);
  if (auto written = write_all(fd.get(), text, temporary); !written) return written;
  if (::rename(temporary.c_str(), path.c_str()) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be put in place", path);
  return {};
}

Result<Identity> read_identity(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/" + kIdentityFile;
  // A directory that is not there is no refusal: no daemon was.
  const auto checked = check_private_directory(runtime_dir);
  if (!checked && checked.error().kind == ErrorKind::kRefused) return std::unexpected(checked.error());
  const auto text = read_own_file(path);
  if (!text) return std::unexpected(text.error());
  const auto object = parse_json(*text);
  Identity identity;
  if (!object.is_object() || !read(object, "version", identity.version) || !read(object, "pid", identity.pid) ||
      !read(object, "triple", identity.triple) || !read(object, "native_isa", identity.native_isa) ||
      !read(object, "store", identity.store) || !read_shared(object, identity.store_is_shared) ||
      !read_compilers(object, identity.compilers) || !read_stores(object, identity.read_only_stores) ||
      !read_owners(object, identity.store_owners) || !read_roots(object, identity.include_roots))
    return unreadable(path);
  return identity;
}

const char* build_version() { return JITC_VERSION; }

bool is_self_contained(const Request& request, const Identity& identity) {
  const CompilerIdentity* compiler = identity.compiler(request.compiler);
  return compiler != nullptr && compiler->path.empty() && identity.include_roots.empty();
}

bool may_hit_directly(const Request& request, const Identity& identity) {
  return identity.version == build_version() && is_self_contained(request, identity);
}

bool is_of_a_node(const Request& request) {
  const auto is_directory = [](const std::string& flag) { return flag.starts_with("-I"); };
  return wants_native(request) || request.compiler != Request().compiler ||
         std::ranges::any_of(request.flags, is_directory);
}

bool wants_native(const Request& request) { return request.isa_wish == "native" || has_flag(request, "-march=native"); }

Result<ResolvedRequest> resolve(const Request& request, const Identity& identity) {
  const CompilerIdentity* compiler = identity.compiler(request.compiler);
  if (compiler == nullptr) {
    std::string names;
    for (const auto& offered : identity.compilers) names += (names.empty() ? "" : ", ") + offered.name;
    return fail(ErrorKind::kRefused, "the daemon does not offer this compiler (it offers: " + names + ")",
                "compiler " + request.compiler, "name one of these, or let the daemon's JITC_COMPILERS list it");
  }
  if (auto known = check_known(*compiler, identity); !known) return std::unexpected(known.error());
  ResolvedRequest resolved;
  resolved.request = request_digest(request);
  resolved.compiler = *compiler;
  resolved.target.triple = identity.triple;
  auto needed = isa_needed(request.flags);
  if (!needed) return std::unexpected(needed.error());
  if (wants_native(request)) {
    resolved.target.isa = identity.native_isa;
    resolved.isa_needed = host_isa();
  } else {
    // Code tuned for this CPU would be served to others under a key that names a level.
    if (has_flag(request, "-mtune=native"))
      return fail(ErrorKind::kRefused,
                  "it makes the code depend on this machine's CPU, which only a native build names",
                  "flag -mtune=native", "ask for --isa native as well, or name the CPU to tune for");
    std::string level = request.isa_wish;
    if (level == "common")
      level = request.isa_level.empty() ? std::string(isa_level_of(host_isa())) : request.isa_level;
    const auto mask = isa_mask_of(level);
    if (!mask) return std::unexpected(mask.error());
    resolved.target.isa = level;
    resolved.isa_needed = *mask;
  }
  resolved.isa_needed |= *needed;
  // Any source may include from the roots, so that their contents are in every key while there are roots.
  if (!identity.include_roots.empty()) {
    Hasher hasher("jitc include roots 1");
    for (const auto& [path, digest] : identity.include_roots) hasher.text("root", digest);
    resolved.includes = hasher.finish();
  }
  resolved.key = artifact_key(resolved.request, resolved.compiler, resolved.target, resolved.includes);
  return resolved;
}

}  // namespace jitc::common
