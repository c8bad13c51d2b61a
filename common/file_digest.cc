#include "common/file_digest.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "common/files.h"

// As in digest.cc.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace jitc::common {

Result<Digest> sha256_of_file(const std::string& path) {
  constexpr std::size_t kPart = 64 * 1024;
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be opened", path);
  SHA256_CTX context;
  SHA256_Init(&context);
  std::vector<char> part(kPart);
  for (;;) {
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be read", path);
    if (got == 0) break;
    SHA256_Update(&context, part.data(), static_cast<std::size_t>(got));
  }
  Digest digest;
  SHA256_Final(digest.bytes.data(), &context);
  return digest;
}

}  // namespace jitc::common
