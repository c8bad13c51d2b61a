// The operations by which a store is changed. One real implementation; tests put failures between.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace jitc::store {

using FileTime = std::chrono::system_clock::time_point;

struct FileInfo {
  std::uint64_t size = 0;
  FileTime used;  // modification time, from 1970 on and not beyond 2200: a use sets it
  bool regular = false;
  mode_t mode = 0;  // its permission bits, setgid and the like
};

// Every virtual function returns 0 (`open` a descriptor, `write` and `read` a number of bytes), or -errno. Each is one
// system call, so that each place where a publish can be interrupted is one call here. Safe to use from several
// threads.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual int open(const std::string& path, int flags, mode_t mode) = 0;
  virtual ssize_t write(int fd, std::string_view bytes) = 0;
  // Of the file's first bytes so many at most, wherever it stands for `write`; their number.
  virtual ssize_t read(int fd, std::string& bytes, std::size_t most) = 0;
  virtual int fchmod(int fd, mode_t mode) = 0;
  virtual int fsync(int fd) = 0;
  virtual int close(int fd) = 0;  // the descriptor is gone whatever it returns
  virtual int link(const std::string& from, const std::string& to) = 0;
  virtual int rename(const std::string& from, const std::string& to) = 0;
  virtual int rename_no_replace(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& path) = 0;
  virtual int mkdir(const std::string& path, mode_t mode) = 0;
  virtual int chmod(const std::string& path, mode_t mode) = 0;
  virtual int status(const std::string& path, FileInfo& info) = 0;                      // of a link itself
  virtual int list(const std::string& directory, std::vector<std::string>& names) = 0;  // follows no link to it
  virtual int remove_tree(const std::string& path) = 0;  // whatever it is; in several calls, following no link
  virtual int touch(const std::string& path) = 0;        // used now
  virtual FileTime now() = 0;

  // Gives the file this name if nothing has it: by a link, and `from` stays, or where there are no links by a rename
  // that replaces nothing. Without either there is no way that could not overwrite what somebody has mapped.
  int link_or_rename(const std::string& from, const std::string& to);
};

FileSystem& real_file_system();

}  // namespace jitc::store
