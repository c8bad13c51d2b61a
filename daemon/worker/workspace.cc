#include "daemon/worker/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <vector>

#include "common/owner.h"
#include "daemon/worker/process_tree.h"

namespace jitc::worker {
namespace {

namespace fs = std::filesystem;
using common::ErrorKind;

constexpr std::chrono::milliseconds kEndPatience{1000};

std::string temporary_directory() {
  const char* configured = std::getenv("TMPDIR");
  return configured != nullptr && configured[0] == '/' ? configured : "/tmp";
}

std::string prefix() { return "jitc-worker-" + std::to_string(geteuid()) + "-"; }

// Ours, and its worker is provably gone.
bool is_left_over(const fs::path& path, const common::Owner& self) {
  const std::string name = path.filename();
  if (!name.starts_with(prefix())) return false;
  struct stat info{};
  if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != geteuid()) return false;
  const auto owner = common::owner_of(std::string_view(name).substr(prefix().size()));
  return owner && common::life_of(*owner, self) == common::Life::kDead;
}

bool is_within(const std::string& process, const std::string& directory) {
  std::error_code error;  // gone, or of another user
  return fs::read_symlink("/proc/" + process + "/cwd", error).string().starts_with(directory + "/");
}

// Compilers work in a directory of their own below it. Those of a worker that was killed together with its daemon have
// nobody else who ends them.
void end_processes_within(const std::string& directory) {
  std::vector<pid_t> killed;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.find_first_not_of("0123456789") != name.npos || !is_within(name, directory)) continue;
    killed.push_back(std::atoi(name.c_str()));
    signal_if(killed.back(), SIGKILL, [&] { return is_within(name, directory); });
  }
  await_ends(killed, kEndPatience);
}

void remove_tree(const fs::path& path) {
  std::error_code ignored;  // what cannot be removed now is tried again by the next worker
  fs::remove_all(path, ignored);
}

}  // namespace

Workspace::Workspace() {
  const common::Owner self = common::Owner::this_process();
  root_ = temporary_directory() + "/" + prefix() + common::temp_name(self);
  std::error_code error;
  for (fs::directory_iterator entry(temporary_directory(), error), end; !error && entry != end;
       entry.increment(error)) {
    if (!is_left_over(entry->path(), self)) continue;
    end_processes_within(entry->path());
    remove_tree(entry->path());
  }
}

Workspace::~Workspace() {
  if (made_) remove_tree(root_);
}

std::string Workspace::path_of(std::uint64_t job) const { return root_ + "/" + std::to_string(job); }

common::Result<common::Fd> Workspace::open(std::uint64_t job) {
  // Never a directory that was there before: somebody else may have made it.
  if (!made_ && mkdir(root_.c_str(), 0700) != 0) {
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot be created", root_,
                              "set TMPDIR to a writable place");
  }
  made_ = true;
  const std::string path = path_of(job);
  if (mkdir(path.c_str(), 0700) != 0) {
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot be created", path, "make room there");
  }
  common::Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory) return common::fail_errno(ErrorKind::kInternal, errno, "cannot be opened", path);
  return directory;
}

void Workspace::remove(std::uint64_t job) {
  if (made_) remove_tree(path_of(job));
}

}  // namespace jitc::worker
