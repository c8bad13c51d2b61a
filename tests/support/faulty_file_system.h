// A file system that works until it is told not to: fails one call or all from one on, before or after it did its work,
// and lets others interfere between two calls.
#pragma once

#include <atomic>
#include <cerrno>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/store/file_system.h"

namespace jitc::testing {

class FaultyFileSystem : public store::FileSystem {
 public:
  struct Fault {
    std::string operation;  // "link"; empty: every one
    unsigned first = 0;     // index among the calls of that operation
    unsigned count = 1;     // calls that fail
    int error = EIO;        // reported
    bool after_it = false;  // it is done, and reported as failed
  };

  // Forgets how many calls there were.
  void arm(Fault fault) {
    fault_ = std::move(fault);
    calls_ = matching_ = failed_ = 0;
  }
  void disarm() { fault_.reset(); }
  unsigned calls() const { return calls_; }
  unsigned failed() const { return failed_; }

  std::function<void(const std::string& operation)> before;  // interference
  std::optional<store::FileTime> clock;                      // instead of the real one

  int open(const std::string& path, int flags, mode_t mode) override {
    const int fd = apply("open", [&] { return real_.open(path, flags, mode); });
    return fd;
  }
  ssize_t write(int fd, std::string_view bytes) override {
    return apply("write", [&] { return real_.write(fd, bytes); });
  }
  ssize_t read(int fd, std::string& bytes, std::size_t most) override {
    return apply("read", [&] { return real_.read(fd, bytes, most); });
  }
  int fchmod(int fd, mode_t mode) override {
    return apply("fchmod", [&] { return real_.fchmod(fd, mode); });
  }
  int fsync(int fd) override {
    return apply("fsync", [&] { return real_.fsync(fd); });
  }
  int close(int fd) override {
    const int closed = real_.close(fd);
    return apply("close", [&] { return closed; });
  }
  int link(const std::string& from, const std::string& to) override {
    return apply("link", [&] { return real_.link(from, to); });
  }
  int rename(const std::string& from, const std::string& to) override {
    return apply("rename", [&] { return real_.rename(from, to); });
  }
  int rename_no_replace(const std::string& from, const std::string& to) override {
    return apply("rename_no_replace", [&] { return real_.rename_no_replace(from, to); });
  }
  int unlink(const std::string& path) override {
    return apply("unlink", [&] { return real_.unlink(path); });
  }
  int mkdir(const std::string& path, mode_t mode) override {
    return apply("mkdir", [&] { return real_.mkdir(path, mode); });
  }
  int chmod(const std::string& path, mode_t mode) override {
    return apply("chmod", [&] { return real_.chmod(path, mode); });
  }
  int status(const std::string& path, store::FileInfo& info) override {
    return apply("status", [&] { return real_.status(path, info); });
  }
  int list(const std::string& directory, std::vector<std::string>& names) override {
    return apply("list", [&] { return real_.list(directory, names); });
  }
  int remove_tree(const std::string& path) override {
    return apply("remove_tree", [&] { return real_.remove_tree(path); });
  }
  int touch(const std::string& path) override {
    return apply("touch", [&] { return real_.touch(path); });
  }
  store::FileTime now() override { return clock ? *clock : real_.now(); }

 private:
  template <class Work>
  auto apply(const std::string& operation, Work work) -> decltype(work()) {
    if (before) before(operation);
    ++calls_;
    if (!fault_ || (!fault_->operation.empty() && fault_->operation != operation)) return work();
    const unsigned index = matching_++;
    if (index < fault_->first || index - fault_->first >= fault_->count) return work();
    ++failed_;
    if (fault_->after_it) {
      const auto result = work();
      if (operation == "open" && result >= 0) real_.close(static_cast<int>(result));
    }
    return -fault_->error;
  }

  store::FileSystem& real_ = store::real_file_system();
  std::optional<Fault> fault_;
  std::atomic<unsigned> calls_{0}, matching_{0}, failed_{0};
};

}  // namespace jitc::testing
