// Careful file operations: owned descriptors, whole reads and writes, private directories, sealed memory files.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "common/error.h"

namespace jitc::common {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int value) : value_(value) {}
  Fd(Fd&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }
  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }
  int release() { return std::exchange(value_, -1); }
  void reset();

 private:
  int value_ = -1;
};

inline constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 30;

// The whole file through an open descriptor, from offset 0, by pread (a file cut meanwhile is a short read, never a
// SIGBUS). `what` names it in errors; kinds: kStoreUnavailable, also for one that has or gets more than `most` bytes,
// and when there is no memory for it.
Result<std::string> read_all(int fd, std::string_view what, std::uint64_t most = kMostFileBytes);
Result<std::string> read_file(const std::string& path, std::uint64_t most = kMostFileBytes);
// Opens what should be a regular file for reading: follows no link under the last name and waits for no FIFO or device.
// Without a descriptor errno says why; ELOOP: it is no regular file. `status` is that of what was opened.
Fd open_regular(const std::string& path, struct stat& status);
// What a failed write, creation or link means: kStoreFull when there is no room or a quota is used up (ENOSPC, EDQUOT,
// EFBIG), else kStoreUnavailable.
ErrorKind write_error_kind(int error_number);
// All bytes at the descriptor's position; kinds as write_error_kind() says.
Result<void> write_all(int fd, std::string_view bytes, std::string_view what);

// A memory file with these bytes, sealed against every change, descriptor closed on exec. Its name shows in /proc.
// Works where memfd_create refuses executable or non-executable flags (vm.memfd_noexec): MFD_EXEC is tried first.
Result<Fd> sealed_memfd(std::string_view name, std::string_view bytes, bool executable);

// Creates the directory and its parents (mode 0700) if absent. kinds as write_error_kind() says, with the reason.
Result<void> make_directories(const std::string& path, mode_t mode = 0700);
// A directory that nobody but this user (or root) can have written: owner is this uid or root, not writable by group or
// others unless sticky and root's. `kRefused` says which directory and why. Symlinks at the last component are refused.
Result<void> check_private_directory(const std::string& path);
// Whom files seem to belong to whose owner has no number here: another user namespace's, or a server's who maps users.
uid_t overflow_uid();

// The file that the last component stands for, through its symbolic links; the file need not exist. kStoreUnavailable.
Result<std::string> follow_links(const std::string& path);

std::string host_name();  // of this UTS namespace
inline constexpr const char* kUnknownBoot = "unknown";
std::string boot_id();                        // kUnknownBoot where /proc is not to be seen
std::uint64_t process_start_time(pid_t pid);  // clock ticks since boot; 0: none is seen

}  // namespace jitc::common
