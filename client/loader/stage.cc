#include "client/loader/stage.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace jitc::loader {
namespace {

using common::Error;
using common::ErrorKind;
using common::Fd;
using common::Result;

constexpr const char* kRemedy = "give another directory to JITC_STAGE_DIR, or unset it to load from memory";

std::unexpected<Error> not_staged(Error error) {
  error.kind = ErrorKind::kNotLoaded;
  error.remedy = kRemedy;
  return std::unexpected(std::move(error));
}

// The file under the final name, if it has these bytes.
Fd open_same(const std::string& path, std::string_view bytes) {
  struct stat status{};
  Fd file = common::open_regular(path, status);
  if (!file) return {};
  const Result<std::string> found = common::read_all(file.get(), path, bytes.size());
  return found && *found == bytes ? std::move(file) : Fd();
}

Result<void> write_new(const std::string& path, std::string_view bytes) {
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700));
  if (!file) return common::fail_errno(ErrorKind::kNotLoaded, errno, "cannot create a staged module", path, kRemedy);
  return common::write_all(file.get(), bytes, path);
}

}  // namespace

Result<StagedFile> stage(const std::string& directory, const common::Digest& key, std::string_view bytes) {
  if (auto made = common::make_directories(directory); !made) return not_staged(made.error());
  if (auto own = common::check_private_directory(directory); !own) return not_staged(own.error());
  const std::string path = directory + "/" + key.hex() + ".so";
  if (Fd file = open_same(path, bytes)) return StagedFile{std::move(file), path};

  // Absent, or not these bytes: a new file takes the name. Who has mapped the old one keeps the old inode. When two
  // ranks do this at once the later rename wins, with the same bytes.
  const std::string temporary = path + "." + std::to_string(getpid());
  unlink(temporary.c_str());
  if (auto written = write_new(temporary, bytes); !written) {
    unlink(temporary.c_str());
    return not_staged(written.error());
  }
  if (std::rename(temporary.c_str(), path.c_str()) != 0) {
    const int error_number = errno;
    unlink(temporary.c_str());
    return common::fail_errno(ErrorKind::kNotLoaded, error_number, "cannot name a staged module", path, kRemedy);
  }
  if (Fd file = open_same(path, bytes)) return StagedFile{std::move(file), path};
  return common::fail(ErrorKind::kNotLoaded, "a staged module changed while it was written", path, kRemedy);
}

}  // namespace jitc::loader
