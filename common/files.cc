#include "common/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <new>
#include <system_error>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace jitc::common {
namespace {

// Kernels before 6.3 refuse the exec flags with EINVAL: there every memfd is executable.
int open_memfd(const std::string& name, bool executable) {
  const unsigned base = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  const int fd = ::memfd_create(name.c_str(), base | (executable ? MFD_EXEC : MFD_NOEXEC_SEAL));
  return fd < 0 && errno == EINVAL ? ::memfd_create(name.c_str(), base) : fd;
}

std::unexpected<Error> refused_directory(const std::string& path, std::string message) {
  return fail(ErrorKind::kRefused, std::move(message), path,
              "use a directory of your own that nobody else can write (chmod go-w)");
}

std::unexpected<Error> too_large(std::string_view what, std::uint64_t most) {
  return fail(ErrorKind::kStoreUnavailable, "has more than " + std::to_string(most) + " bytes", std::string(what));
}

std::unexpected<Error> no_memory(std::string_view what, std::uint64_t size) {
  return fail(ErrorKind::kStoreUnavailable, "there is no memory for its " + std::to_string(size) + " bytes",
              std::string(what));
}

// The size is a file's, which others may have made: no reason to end.
bool resize(std::string& bytes, std::uint64_t size) {
  try {
    bytes.resize(size);
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    value_ = std::exchange(other.value_, -1);
  }
  return *this;
}

void Fd::reset() {
  if (value_ >= 0) ::close(value_);
  value_ = -1;
}

Result<std::string> read_all(int fd, std::string_view what, std::uint64_t most) {
  struct stat status{};
  if (::fstat(fd, &status) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be read", std::string(what));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > most) return too_large(what, most);
  std::string bytes;
  if (!resize(bytes, size)) return no_memory(what, size);
  std::size_t have = 0;
  for (;;) {
    if (have > most) return too_large(what, most);
    // One byte more than fstat said, so that a file that grows (or /proc, which says 0) is read to its end.
    const std::size_t more = bytes.size() + std::max<std::size_t>(4096, bytes.size() / 8);
    if (have == bytes.size() && !resize(bytes, more)) return no_memory(what, more);
    const ssize_t got = ::pread(fd, bytes.data() + have, bytes.size() - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be read", std::string(what));
    if (got == 0) break;
    have += static_cast<std::size_t>(got);
  }
  bytes.resize(have);
  return bytes;
}

Result<std::string> read_file(const std::string& path, std::uint64_t most) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be opened", path);
  return read_all(fd.get(), path, most);
}

Fd open_regular(const std::string& path, struct stat& status) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!fd && errno == ENXIO) errno = ELOOP;  // a socket, or a device that is not there
  if (!fd) return {};
  if (::fstat(fd.get(), &status) != 0) {
    fd.reset();
    errno = ESTALE;  // it is there, and its server lost it: whatever was reported
    return {};
  }
  if (S_ISREG(status.st_mode)) return fd;
  fd.reset();
  errno = ELOOP;
  return {};
}

ErrorKind write_error_kind(int error_number) {
  const bool full = error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
  return full ? ErrorKind::kStoreFull : ErrorKind::kStoreUnavailable;
}

Result<void> write_all(int fd, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail_errno(write_error_kind(errno), errno, "cannot be written", std::string(what));
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<Fd> sealed_memfd(std::string_view name, std::string_view bytes, bool executable) {
  Fd fd(open_memfd(std::string(name), executable));
  if (!fd)
    return fail_errno(ErrorKind::kNotLoaded, errno, "no memory file can be made", std::string(name),
                      executable ? "if vm.memfd_noexec forbids it, set JITC_STAGE_DIR to a directory of your own" : "");
  if (auto written = write_all(fd.get(), bytes, name); !written) return std::unexpected(written.error());
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0)
    return fail_errno(ErrorKind::kNotLoaded, errno, "a memory file cannot be sealed", std::string(name));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0)
    return fail_errno(ErrorKind::kInternal, errno, "a memory file cannot be rewound", std::string(name));
  return fd;
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    // Another process may make it at the same moment: EEXIST is success whoever came first.
    if (!part.empty() && ::mkdir(part.c_str(), mode) != 0 && errno != EEXIST) {
      struct stat status{};
      const int error_number = errno;
      // A parent that exists may answer EROFS or EACCES instead of EEXIST.
      if (::stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
        return fail_errno(write_error_kind(error_number), error_number, "the directory cannot be made", part);
    }
    if (slash == std::string::npos) break;
  }
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
    return fail(ErrorKind::kStoreUnavailable, "not a directory", path);
  return {};
}

Result<void> check_private_directory(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be looked at", path);
  if (S_ISLNK(status.st_mode)) return refused_directory(path, "a symbolic link, which may lead anywhere");
  if (!S_ISDIR(status.st_mode)) return refused_directory(path, "not a directory");
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return refused_directory(path, "belongs to uid " + std::to_string(status.st_uid) + ", not to this user");
  const bool root_sticky = status.st_uid == 0 && (status.st_mode & S_ISVTX) != 0;
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !root_sticky)
    return refused_directory(path, "others may write into it");
  return {};
}

Result<std::string> follow_links(const std::string& path) {
  constexpr int kMost = 40;  // as the kernel counts
  std::filesystem::path file = path;
  std::error_code error;
  for (int i = 0; std::filesystem::is_symlink(file, error); ++i) {
    if (i == kMost) error = std::make_error_code(std::errc::too_many_symbolic_link_levels);
    if (!error) file = file.parent_path() / std::filesystem::read_symlink(file, error);
    if (error)
      return fail_errno(ErrorKind::kStoreUnavailable, error.value(), "the symbolic link cannot be followed", path);
  }
  return file.string();
}

uid_t overflow_uid() {
  const auto text = read_file("/proc/sys/kernel/overflowuid");
  uid_t value = 65534;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "localhost";
}

std::string boot_id() {
  auto text = read_file("/proc/sys/kernel/random/boot_id");
  if (!text) return kUnknownBoot;
  while (text->ends_with('\n')) text->pop_back();
  return *text;
}

std::uint64_t process_start_time(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  if (!text) return 0;
  // The command in parentheses may hold blanks and parentheses itself; field 22 counts from behind the last one.
  std::size_t at = text->rfind(')');
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = text->find(' ', at + 1);
  if (at == std::string::npos) return 0;
  std::uint64_t value = 0;
  std::from_chars(text->data() + at + 1, text->data() + text->size(), value);
  return value;
}

}  // namespace jitc::common
