#include "daemon/worker/file_view.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/Path.h>

#include <algorithm>
#include <array>
#include <climits>
#include <cstdlib>
#include <memory>
#include <vector>

#include "common/files.h"
#include "daemon/worker/builtin_headers.h"

namespace jitc::worker {
namespace {

using llvm::vfs::Status;

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

// An opened file below a root.
class RootedFile : public llvm::vfs::File {
 public:
  RootedFile(common::Fd fd, Status status) : fd_(std::move(fd)), status_(std::move(status)) {}
  llvm::ErrorOr<Status> status() override { return status_; }
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> getBuffer(const llvm::Twine& name, int64_t, bool, bool) override {
    const auto bytes = common::read_all(fd_.get(), name.str());
    if (!bytes) return std::make_error_code(std::errc::io_error);
    return llvm::MemoryBuffer::getMemBufferCopy(*bytes, name);
  }
  std::error_code close() override {
    fd_.reset();
    return {};
  }

 private:
  common::Fd fd_;
  Status status_;
};

// Real files under the roots. A path is first opened without reading it (O_PATH follows symlinks), then the kernel is
// asked where it led; what is outside of every root is said not to exist. So no check can be raced by a changed
// symlink.
class RootedFileSystem : public llvm::vfs::FileSystem {
 public:
  explicit RootedFileSystem(std::span<const std::string> roots) {
    for (const std::string& root : roots) {
      const std::unique_ptr<char, decltype(&std::free)> real(realpath(root.c_str(), nullptr), &std::free);
      if (real != nullptr) roots_.emplace_back(real.get());
    }
  }

  llvm::ErrorOr<Status> status(const llvm::Twine& path) override {
    const common::Fd found = find(path);
    if (!found) return std::make_error_code(std::errc::no_such_file_or_directory);
    return status_of(found, path.str());
  }
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override {
    const common::Fd found = find(path);
    if (!found) return std::make_error_code(std::errc::no_such_file_or_directory);
    auto status = status_of(found, path.str());
    if (!status) return status.getError();
    if (!status->isRegularFile()) return std::make_error_code(std::errc::is_a_directory);
    common::Fd file(::open(descriptor_path(found.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!file) return std::make_error_code(std::errc::permission_denied);
    return std::make_unique<RootedFile>(std::move(file), std::move(*status));
  }
  llvm::vfs::directory_iterator dir_begin(const llvm::Twine&, std::error_code& error) override {
    error = std::make_error_code(std::errc::operation_not_supported);
    return {};
  }
  llvm::ErrorOr<std::string> getCurrentWorkingDirectory() const override { return directory_; }
  std::error_code setCurrentWorkingDirectory(const llvm::Twine& path) override {
    directory_ = path.str();
    return {};
  }

 private:
  common::Fd find(const llvm::Twine& path) const {
    llvm::SmallString<256> absolute;
    path.toVector(absolute);
    if (makeAbsolute(absolute)) return {};
    common::Fd found(::open(absolute.c_str(), O_PATH | O_CLOEXEC));
    if (!found) return {};
    std::array<char, PATH_MAX> place{};
    const ssize_t size = ::readlink(descriptor_path(found.get()).c_str(), place.data(), place.size());
    if (size <= 0 || !is_inside({place.data(), static_cast<std::size_t>(size)})) return {};
    return found;
  }
  bool is_inside(std::string_view place) const {
    return std::ranges::any_of(roots_, [place](const std::string& root) {
      return place.starts_with(root) && (place.size() == root.size() || root == "/" || place[root.size()] == '/');
    });
  }
  static llvm::ErrorOr<Status> status_of(const common::Fd& file, const std::string& name) {
    struct stat info{};
    if (::fstat(file.get(), &info) != 0) return std::error_code(errno, std::generic_category());
    const bool is_directory = S_ISDIR(info.st_mode);
    if (!is_directory && !S_ISREG(info.st_mode)) return std::make_error_code(std::errc::no_such_file_or_directory);
    // The time of change is left out: it must not reach a result.
    return Status(name, llvm::sys::fs::UniqueID(info.st_dev, info.st_ino), llvm::sys::TimePoint<>(), 0, 0,
                  static_cast<uint64_t>(info.st_size),
                  is_directory ? llvm::sys::fs::file_type::directory_file : llvm::sys::fs::file_type::regular_file,
                  llvm::sys::fs::all_read);
  }

  std::vector<std::string> roots_;
  std::string directory_ = kSourceDirectory;
};

}  // namespace

common::Result<void> check_header_names(const v1::Headers& headers) {
  for (const auto& header : headers.headers()) {
    const std::string& name = header.name();
    bool leaves = name.empty() || name.front() == '/' || name == kSourceName || name.find('\0') != std::string::npos;
    for (auto part = llvm::sys::path::begin(name); part != llvm::sys::path::end(name); ++part) leaves |= *part == "..";
    if (leaves) {
      return common::fail(common::ErrorKind::kRefused, "not a relative name below the source",
                          "header \"" + name + "\"",
                          "send the header under the name that its #include spells, without \"..\"");
    }
  }
  return {};
}

FileSystem make_memory_view(std::string_view source, const v1::Headers& headers) {
  auto memory = llvm::makeIntrusiveRefCnt<llvm::vfs::InMemoryFileSystem>();
  static_cast<void>(memory->setCurrentWorkingDirectory(kSourceDirectory));
  const std::string builtin = std::string(kBuiltinDirectory) + "/";
  for (const BuiltinHeader& header : builtin_headers()) {
    memory->addFile(builtin + std::string(header.name), 0, llvm::MemoryBuffer::getMemBuffer(header.text));
  }
  memory->addFile(kSourceName, 0, llvm::MemoryBuffer::getMemBuffer(source));
  for (const auto& header : headers.headers()) {
    memory->addFile(header.name(), 0, llvm::MemoryBuffer::getMemBuffer(header.text()));
  }
  return memory;
}

FileSystem with_include_roots(FileSystem memory, std::span<const std::string> roots) {
  if (roots.empty()) return memory;
  auto both =
      llvm::makeIntrusiveRefCnt<llvm::vfs::OverlayFileSystem>(llvm::makeIntrusiveRefCnt<RootedFileSystem>(roots));
  both->pushOverlay(std::move(memory));
  static_cast<void>(both->setCurrentWorkingDirectory(kSourceDirectory));  // it cannot fail: nothing is looked up
  return both;
}

}  // namespace jitc::worker
