// A file system under a process that ends before its Nth call, and with it, if so wanted, the machine: what was written
// and not synced is lost in part. To be used in a child process; its last act is to lose it.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "tests/support/faulty_file_system.h"

namespace jitc::testing {

class CrashingFileSystem : public FaultyFileSystem {
 public:
  enum class Loss {
    kNothing,  // the process died, the machine did not
    kBytes,    // files that were not synced are empty
    kTail,     // have their first half
    kPages,    // have their size, and zeroes
    kNames,    // names that were not synced are gone, and the bytes of the rest
  };
  static constexpr int kStopped = 3, kDone = 4;  // exit codes

  CrashingFileSystem(std::string root, Loss loss, unsigned last) : root_(std::move(root)), loss_(loss), last_(last) {
    before = [this](const std::string&) {
      if (calls_seen_++ == last_) crash(kStopped);
    };
  }
  [[noreturn]] void crash(int code) {
    if (loss_ != Loss::kNothing) lose();
    ::_exit(code);
  }

  int open(const std::string& path, int flags, mode_t mode) override {
    const int fd = FaultyFileSystem::open(path, flags, mode);
    if (fd >= 0 && (flags & O_CREAT) != 0) names_.insert(path);
    return fd;
  }
  ssize_t write(int fd, std::string_view bytes) override {
    dirty_.insert(inode_of(fd));
    return FaultyFileSystem::write(fd, bytes);
  }
  int fsync(int fd) override {
    const int error = FaultyFileSystem::fsync(fd);
    dirty_.erase(inode_of(fd));
    const std::string directory = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd));
    std::erase_if(names_, [&](const std::string& name) { return name.substr(0, name.rfind('/')) == directory; });
    return error;
  }
  int link(const std::string& from, const std::string& to) override {
    return named(to, FaultyFileSystem::link(from, to));
  }
  int rename(const std::string& from, const std::string& to) override {
    return named(to, FaultyFileSystem::rename(from, to));
  }
  int rename_no_replace(const std::string& from, const std::string& to) override {
    return named(to, FaultyFileSystem::rename_no_replace(from, to));
  }

 private:
  int named(const std::string& name, int error) {
    if (error == 0) names_.insert(name);
    return error;
  }
  static ino_t inode_of(int fd) {
    struct stat status{};
    return ::fstat(fd, &status) == 0 ? status.st_ino : 0;
  }
  void lose() {
    namespace fs = std::filesystem;
    std::error_code none;
    if (loss_ == Loss::kNames) {
      for (const std::string& name : names_) fs::remove(name, none);
    }
    for (const auto& entry : fs::recursive_directory_iterator(root_, none)) {
      struct stat status{};
      if (::lstat(entry.path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
      if (dirty_.erase(status.st_ino) == 0) continue;  // every name of it shows the loss
      const off_t size = status.st_size;
      static_cast<void>(!::truncate(entry.path().c_str(), loss_ == Loss::kTail ? size / 2 : 0));
      if (loss_ == Loss::kPages) static_cast<void>(!::truncate(entry.path().c_str(), size));
    }
  }

  const std::string root_;
  const Loss loss_;
  const unsigned last_;
  unsigned calls_seen_ = 0;
  std::set<ino_t> dirty_;
  std::set<std::string> names_;  // since their directory was synced
};

}  // namespace jitc::testing
