// A library to preload (LD_PRELOAD): makes file operations of the process fail, fall short or hang, as told by the
// rules in the file that FAULT_RULES names. That file is read again whenever it is replaced (by rename), so that one
// daemon or one job goes through many faults; counts begin anew with it. A rule is a line of words:
//
//   fail  OPERATIONS PATTERN ERRNO [CONDITION...]   the call is not made and reports ERRNO (ENOENT, ESTALE, EIO, ...)
//   short OPERATIONS PATTERN BYTES [CONDITION...]   read or write: at most so many bytes; 0 is an end of file
//   hold  OPERATIONS PATTERN FIFO  [CONDITION...]   the call is made when a writer has opened and closed FIFO
//   watch OPERATIONS PATTERN       [CONDITION...]   the call is only told of
//
// OPERATIONS: names joined by commas (fault_rules.cc), or "all". PATTERN: the shell's, of the absolute path; '*' takes
// slashes too. Of two paths (link, rename) one must match, of a descriptor its file's.
// CONDITION: "rank N" (of MPI), "program NAME", "call N" (the N-th that matches, from 1; each process counts for
// itself), "from N" (that one and all later ones), "after" (with fail: the call is made first; not for open).
// The first rule that applies decides; those that watch let the next one decide.
//
// Each fault and each watched call is a line of FAULT_RULES.log, before it happens: pid, rank (-1: none), program,
// operation, what is done (an errno, short, hold, watch), path. The log may be a FIFO that the test keeps open: then a
// line is an event to wait for. A rule that cannot be read ends the process: a test must not pass for want of faults.
//
// Not seen: what the C library does within itself, and system calls that bypass it (strace sees those).
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <optional>

#include "tests/faults/fault_rules.h"

namespace {

using namespace jitc::faults;

constexpr std::size_t kAll = SIZE_MAX;

// What the shim itself does is no call of the program's: no rule applies to it.
thread_local bool is_inside = false;

class Inside {
 public:
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
};

// The function that this one stands before.
template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

Place at(const char* name) { return {AT_FDCWD, name}; }
Place at(int descriptor) { return {descriptor, ""}; }

// `work` makes the call with at most so many bytes.
template <class Work>
auto apply(Operation operation, std::initializer_list<Place> places, Work work) -> decltype(work(kAll)) {
  using Result = decltype(work(kAll));
  if (is_inside) return work(kAll);
  const int before = errno;
  std::optional<Fault> fault;
  {
    const Inside inside;
    fault = fault_of(operation, places);
    if (fault && fault->effect == Effect::kHold) wait_on(fault->fifo);
  }
  errno = before;
  if (!fault || fault->effect == Effect::kHold) return work(kAll);
  if (fault->effect == Effect::kShort) return work(fault->bytes);
  if (fault->after) static_cast<void>(work(kAll));
  errno = fault->error;
  return static_cast<Result>(-1);
}

// As apply(), for what returns a pointer, or `failed`.
template <class Work>
auto apply_pointer(Operation operation, std::initializer_list<Place> places, void* failed, Work work)
    -> decltype(work()) {
  using Pointer = decltype(work());
  Pointer pointer = static_cast<Pointer>(failed);
  const int result = apply(operation, places, [&](std::size_t) {
    pointer = work();
    return pointer == failed ? -1 : 0;
  });
  return result == 0 ? pointer : static_cast<Pointer>(failed);
}

mode_t mode_of(int flags, va_list arguments) {
  const bool makes_one = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  return makes_one ? va_arg(arguments, mode_t) : 0;
}

// A directory is opened to be listed.
Operation opening(int flags) { return (flags & O_DIRECTORY) != 0 && (flags & O_TMPFILE) != O_TMPFILE ? kList : kOpen; }

}  // namespace

#define REAL(function) static const auto real = next<decltype(&::function)>(#function)
#define EXPORT extern "C" __attribute__((visibility("default")))

// ---- open, close --------------------------------------------------------------------------------------------------

#define OPEN(function)                                                                              \
  EXPORT int function(const char* path, int flags, ...) {                                           \
    REAL(function);                                                                                 \
    va_list arguments;                                                                              \
    va_start(arguments, flags);                                                                     \
    const mode_t mode = mode_of(flags, arguments);                                                  \
    va_end(arguments);                                                                              \
    return apply(opening(flags), {at(path)}, [&](std::size_t) { return real(path, flags, mode); }); \
  }
OPEN(open)
OPEN(open64)

#define OPENAT(function)                                                           \
  EXPORT int function(int directory, const char* path, int flags, ...) {           \
    REAL(function);                                                                \
    va_list arguments;                                                             \
    va_start(arguments, flags);                                                    \
    const mode_t mode = mode_of(flags, arguments);                                 \
    va_end(arguments);                                                             \
    return apply(opening(flags), {Place{directory, path}},                         \
                 [&](std::size_t) { return real(directory, path, flags, mode); }); \
  }
OPENAT(openat)
OPENAT(openat64)

#define FOPEN(function)                                                                 \
  EXPORT FILE* function(const char* path, const char* mode) {                           \
    REAL(function);                                                                     \
    return apply_pointer(kOpen, {at(path)}, nullptr, [&] { return real(path, mode); }); \
  }
FOPEN(fopen)
FOPEN(fopen64)

EXPORT int close(int descriptor) {
  REAL(close);
  return apply(kClose, {at(descriptor)}, [&](std::size_t) { return real(descriptor); });
}

EXPORT DIR* opendir(const char* path) {
  REAL(opendir);
  return apply_pointer(kList, {at(path)}, nullptr, [&] { return real(path); });
}

// ---- look ---------------------------------------------------------------------------------------------------------

// NOLINTBEGIN(bugprone-macro-parentheses): a type stands in no parentheses

#define STAT(function, type)                                                          \
  EXPORT int function(const char* path, type* status) noexcept {                      \
    REAL(function);                                                                   \
    return apply(kStat, {at(path)}, [&](std::size_t) { return real(path, status); }); \
  }
STAT(stat, struct stat)
STAT(lstat, struct stat)
STAT(stat64, struct stat64)
STAT(lstat64, struct stat64)

#define FSTAT(function, type)                                                                     \
  EXPORT int function(int descriptor, type* status) noexcept {                                    \
    REAL(function);                                                                               \
    return apply(kStat, {at(descriptor)}, [&](std::size_t) { return real(descriptor, status); }); \
  }
FSTAT(fstat, struct stat)
FSTAT(fstat64, struct stat64)

#define FSTATAT(function, type)                                                                                       \
  EXPORT int function(int directory, const char* path, type* status, int flags) noexcept {                            \
    REAL(function);                                                                                                   \
    return apply(kStat, {Place{directory, path}}, [&](std::size_t) { return real(directory, path, status, flags); }); \
  }
FSTATAT(fstatat, struct stat)
FSTATAT(fstatat64, struct stat64)
// NOLINTEND(bugprone-macro-parentheses)

EXPORT int statx(int directory, const char* path, int flags, unsigned mask, struct statx* status) noexcept {
  REAL(statx);
  return apply(kStat, {Place{directory, path}},
               [&](std::size_t) { return real(directory, path, flags, mask, status); });
}

EXPORT int access(const char* path, int mode) noexcept {
  REAL(access);
  return apply(kStat, {at(path)}, [&](std::size_t) { return real(path, mode); });
}

// ---- bytes --------------------------------------------------------------------------------------------------------

EXPORT ssize_t read(int descriptor, void* bytes, std::size_t count) {
  REAL(read);
  return apply(kRead, {at(descriptor)},
               [&](std::size_t most) { return real(descriptor, bytes, std::min(count, most)); });
}

#define PREAD(function)                                                                                     \
  EXPORT ssize_t function(int descriptor, void* bytes, std::size_t count, off_t offset) {                   \
    REAL(function);                                                                                         \
    return apply(kRead, {at(descriptor)},                                                                   \
                 [&](std::size_t most) { return real(descriptor, bytes, std::min(count, most), offset); }); \
  }
PREAD(pread)
PREAD(pread64)

EXPORT ssize_t write(int descriptor, const void* bytes, std::size_t count) {
  REAL(write);
  return apply(kWrite, {at(descriptor)},
               [&](std::size_t most) { return real(descriptor, bytes, std::min(count, most)); });
}

#define MMAP(function)                                                                                \
  EXPORT void* function(void* address, std::size_t size, int protection, int flags, int descriptor,   \
                        off_t offset) noexcept {                                                      \
    REAL(function);                                                                                   \
    if (descriptor < 0) return real(address, size, protection, flags, descriptor, offset);            \
    return apply_pointer(kMap, {at(descriptor)}, MAP_FAILED,                                          \
                         [&] { return real(address, size, protection, flags, descriptor, offset); }); \
  }
MMAP(mmap)
MMAP(mmap64)

#define FSYNC(function)                                                                    \
  EXPORT int function(int descriptor) {                                                    \
    REAL(function);                                                                        \
    return apply(kFsync, {at(descriptor)}, [&](std::size_t) { return real(descriptor); }); \
  }
FSYNC(fsync)
FSYNC(fdatasync)

// ---- names --------------------------------------------------------------------------------------------------------

EXPORT int link(const char* from, const char* to) noexcept {
  REAL(link);
  return apply(kLink, {at(from), at(to)}, [&](std::size_t) { return real(from, to); });
}

EXPORT int linkat(int from_directory, const char* from, int to_directory, const char* to, int flags) noexcept {
  REAL(linkat);
  return apply(kLink, {Place{from_directory, from}, Place{to_directory, to}},
               [&](std::size_t) { return real(from_directory, from, to_directory, to, flags); });
}

EXPORT int rename(const char* from, const char* to) noexcept {
  REAL(rename);
  return apply(kRename, {at(from), at(to)}, [&](std::size_t) { return real(from, to); });
}

EXPORT int renameat(int from_directory, const char* from, int to_directory, const char* to) noexcept {
  REAL(renameat);
  return apply(kRename, {Place{from_directory, from}, Place{to_directory, to}},
               [&](std::size_t) { return real(from_directory, from, to_directory, to); });
}

EXPORT int renameat2(int from_directory, const char* from, int to_directory, const char* to, unsigned flags) noexcept {
  REAL(renameat2);
  return apply(kRename, {Place{from_directory, from}, Place{to_directory, to}},
               [&](std::size_t) { return real(from_directory, from, to_directory, to, flags); });
}

EXPORT int unlink(const char* path) noexcept {
  REAL(unlink);
  return apply(kUnlink, {at(path)}, [&](std::size_t) { return real(path); });
}

EXPORT int unlinkat(int directory, const char* path, int flags) noexcept {
  REAL(unlinkat);
  return apply(kUnlink, {Place{directory, path}}, [&](std::size_t) { return real(directory, path, flags); });
}

EXPORT int mkdir(const char* path, mode_t mode) noexcept {
  REAL(mkdir);
  return apply(kMkdir, {at(path)}, [&](std::size_t) { return real(path, mode); });
}

EXPORT int chmod(const char* path, mode_t mode) noexcept {
  REAL(chmod);
  return apply(kChmod, {at(path)}, [&](std::size_t) { return real(path, mode); });
}

EXPORT int fchmod(int descriptor, mode_t mode) noexcept {
  REAL(fchmod);
  return apply(kChmod, {at(descriptor)}, [&](std::size_t) { return real(descriptor, mode); });
}

EXPORT int utimensat(int directory, const char* path, const struct timespec* times, int flags) noexcept {
  REAL(utimensat);
  return apply(kTouch, {Place{directory, path}}, [&](std::size_t) { return real(directory, path, times, flags); });
}
