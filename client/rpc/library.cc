#include "client/rpc/library.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

#include "common/identity.h"

namespace jitc::rpc {
namespace {

using common::ErrorKind;
using common::fail;
using common::Result;

constexpr const char* kLibraryName = "libjitc-rpc.so";

// The solver may hold another protobuf, Abseil or gRPC in the global scope: RTLD_DEEPBIND makes the library find its
// own first, RTLD_LOCAL keeps them from others. A sanitizer's run time must stay in front of everything, so not there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
constexpr int kMode = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif
#else
constexpr int kMode = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

struct Library {
  decltype(&jitc_rpc_open) open = nullptr;
  decltype(&jitc_rpc_close) close = nullptr;
};

std::string directory_of_this_code() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&open_daemon), &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? std::string() : file.substr(0, slash);
}

std::vector<std::string> candidates() {
  // Not in a set-user-id program: there the environment is somebody else's.
  if (const char* named = ::secure_getenv("JITC_RPC_LIBRARY"); named != nullptr && *named != '\0') return {named};
  std::vector<std::string> paths;
  if (const auto directory = directory_of_this_code(); !directory.empty()) {
    // In the build tree, and installed.
    for (const char* folder : {"/", "/" JITC_PRIVATE_DIR "/"}) {
      const auto path = directory + folder + kLibraryName;
      if (::access(path.c_str(), R_OK) == 0) paths.push_back(path);
    }
  }
  paths.emplace_back(kLibraryName);
  return paths;
}

Result<Library> load() {
  std::string reasons;
  for (const auto& path : candidates()) {
    void* handle = ::dlopen(path.c_str(), kMode);
    if (handle == nullptr) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(::dlerror());
      continue;
    }
    Library library;
    library.open = reinterpret_cast<decltype(library.open)>(::dlsym(handle, "jitc_rpc_open"));
    library.close = reinterpret_cast<decltype(library.close)>(::dlsym(handle, "jitc_rpc_close"));
    if (library.open != nullptr && library.close != nullptr) return library;
    return fail(ErrorKind::kVersionSkew, "this is not the daemon's client library", path,
                "install libjitc.so and libjitc-rpc.so of one build");
  }
  return fail(ErrorKind::kUnreachable, "the daemon's client library cannot be loaded: " + reasons, kLibraryName,
              "install it with libjitc.so; JITC_RPC_LIBRARY may name it");
}

}  // namespace

Result<DaemonHandle> open_daemon(const std::string& socket_path) {
  const auto loaded = load();
  if (!loaded) return std::unexpected(loaded.error());
  DaemonHandle daemon(loaded->open(interface_version(common::build_version()), socket_path.c_str()),
                      CloseDaemon{loaded->close});
  if (daemon) return daemon;
  return fail(ErrorKind::kVersionSkew, "the daemon's client library is of another build", kLibraryName,
              "install libjitc.so and libjitc-rpc.so of one build");
}

}  // namespace jitc::rpc
