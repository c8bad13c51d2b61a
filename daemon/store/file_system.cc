#include "daemon/store/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>  // renameat2
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace jitc::store {
namespace {

constexpr time_t kLatest = 7'258'118'400;  // the year 2200: times may be added up without a thought

int result_of(int value) { return value < 0 ? -errno : value; }

class RealFileSystem : public FileSystem {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    return result_of(::open(path.c_str(), flags | O_CLOEXEC, mode));
  }
  ssize_t write(int fd, std::string_view bytes) override {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    return written < 0 ? -errno : written;
  }
  ssize_t read(int fd, std::string& bytes, std::size_t most) override {
    bytes.resize(most);
    const ssize_t got = ::pread(fd, bytes.data(), most, 0);
    const int error = errno;
    bytes.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return got < 0 ? -error : got;
  }
  int fchmod(int fd, mode_t mode) override { return result_of(::fchmod(fd, mode)); }
  int fsync(int fd) override { return result_of(::fsync(fd)); }
  int close(int fd) override { return result_of(::close(fd)); }
  int link(const std::string& from, const std::string& to) override {
    return result_of(::link(from.c_str(), to.c_str()));
  }
  int rename(const std::string& from, const std::string& to) override {
    return result_of(::rename(from.c_str(), to.c_str()));
  }
  int rename_no_replace(const std::string& from, const std::string& to) override {
    return result_of(::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE));
  }
  int unlink(const std::string& path) override { return result_of(::unlink(path.c_str())); }
  int mkdir(const std::string& path, mode_t mode) override { return result_of(::mkdir(path.c_str(), mode)); }
  int chmod(const std::string& path, mode_t mode) override { return result_of(::chmod(path.c_str(), mode)); }

  int status(const std::string& path, FileInfo& info) override {
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) return -errno;
    info.size = static_cast<std::uint64_t>(status.st_size);
    info.used = FileTime(std::chrono::seconds(std::clamp<time_t>(status.st_mtim.tv_sec, 0, kLatest)) +
                         std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    info.regular = S_ISREG(status.st_mode);
    info.mode = status.st_mode & ~static_cast<mode_t>(S_IFMT);
    return 0;
  }

  int list(const std::string& directory, std::vector<std::string>& names) override {
    const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (!stream) {
      const int error = errno;
      if (fd >= 0) ::close(fd);
      return -error;
    }
    for (errno = 0; const dirent* entry = ::readdir(stream); errno = 0) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error = -errno;
    ::closedir(stream);
    return error;
  }

  int remove_tree(const std::string& path) override {
    std::error_code error;
    std::filesystem::remove_all(path, error);
    return -error.value();
  }

  int touch(const std::string& path) override {
    return result_of(::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW));
  }
  FileTime now() override { return std::chrono::system_clock::now(); }
};

// Does the file system make no links? Some say so for every file (FAT, some FUSE), some for a few of them.
bool links_refused(int error) { return error == -EPERM || error == -ENOTSUP || error == -EMLINK || error == -ENOSYS; }

}  // namespace

int FileSystem::link_or_rename(const std::string& from, const std::string& to) {
  const int error = link(from, to);
  return links_refused(error) ? rename_no_replace(from, to) : error;
}

FileSystem& real_file_system() {
  static RealFileSystem file_system;
  return file_system;
}

}  // namespace jitc::store
