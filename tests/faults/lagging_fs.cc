// A shared directory as one node of a cluster sees it: a FUSE file system (libfuse3) that passes through to a backing
// directory, and remembers what it saw there as an NFS or Lustre client does. One mount is one node.
//
//   lagging_fs BACKING MOUNT [--snapshot] [--no-locks] [--no-fsync] [--no-link] [-o FUSE_OPTIONS]
//
// What a node made itself it sees as it is. What others made or removed:
//   - A name that was found or found absent stays so (attributes, negative entries), until the node looks again. With
//     --snapshot this holds for all names: the node sees what there was when it was mounted or last looked.
//   - Closing and opening shows new contents. Opening what others removed or replaced gives ESTALE once, and the name
//   is
//     looked up anew.
//   - Where making a name says that it exists, the name is looked up anew.
// No clock is involved: a node looks again when it is told to.
//
//   --no-locks   flock and fcntl locks fail (ENOLCK)
//   --no-fsync   fsync fails (EINVAL)
//   --no-link    link fails (EPERM)
//   -o noexec    as for every mount
//
// MOUNT/.node is not of the backing directory. Written to it: "names" looks again, but what is new has no contents yet
// (0 bytes), "all" looks again. Read from it: counters, a line each: hidden (answers "absent" where there is
// something), hollow (opened without its contents), stale (ESTALE). Prints a line when mounted.
#define FUSE_USE_VERSION 312
#include <dirent.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view kControl = "/.node";
constexpr unsigned kStaleAnswers = 2;  // the kernel asks once more by itself before it tells the program

struct Options {
  std::string backing;
  bool snapshot = false, locks = true, fsync = true, link = true;
};

struct Counters {
  unsigned long hidden = 0, hollow = 0, stale = 0;
};

// What the node believes of one name.
struct Belief {
  bool exists = false;
  bool hollow = false;  // its contents have not arrived
  unsigned stale = 0;   // answers of ESTALE so far
  struct stat status{};
};

class Node {
 public:
  explicit Node(Options options) : options_(std::move(options)) { look_again(false); }

  const Options& options() const { return options_; }
  std::mutex& mutex() { return mutex_; }
  Counters& counters() { return counters_; }
  std::string backing(const std::string& path) const { return options_.backing + path; }

  // Forgets; with --snapshot takes in all that is there. `hollow`: what is new there has no contents.
  void look_again(bool hollow) {
    known_before_.clear();
    for (const auto& [path, belief] : beliefs_)
      if (belief.exists && !belief.hollow) known_before_.insert(path);
    beliefs_.clear();
    hollow_ = hollow;
    if (options_.snapshot) take_in("");
  }

  // What is believed of this name; asks the backing directory where nothing is.
  Belief& look(const std::string& path) {
    if (const auto known = beliefs_.find(path); known != beliefs_.end()) return known->second;
    if (options_.snapshot && path != "/") return beliefs_[path] = {};
    return ask(path);
  }

  // Looks this name up anew.
  Belief& ask(const std::string& path) {
    Belief& belief = beliefs_[path] = {};
    belief.exists = ::lstat(backing(path).c_str(), &belief.status) == 0;
    belief.hollow =
        hollow_ && belief.exists && S_ISREG(belief.status.st_mode) && !is_own(belief) && !known_before_.contains(path);
    return belief;
  }

  void made(const std::string& path) {
    Belief& belief = beliefs_[path] = {};
    belief.exists = ::lstat(backing(path).c_str(), &belief.status) == 0;
    if (belief.exists) own_.insert(belief.status.st_ino);
  }
  // With its contents: an answer of the server, after which the client takes the file as it is.
  void found_to_exist(const std::string& path) { ask(path).hollow = false; }
  void removed(const std::string& path) { beliefs_[path] = {}; }
  void renamed(const std::string& from, const std::string& to) {
    Belief moved = look(from);
    beliefs_[to] = moved;
    removed(from);
  }
  void forget(const std::string& path) { beliefs_.erase(path); }

  bool is_own(const Belief& belief) const { return own_.contains(belief.status.st_ino); }

  // 0, or why the name cannot be used.
  int check(const std::string& path) {
    const Belief& belief = look(path);
    if (belief.exists) return 0;
    struct stat real{};
    if (::lstat(backing(path).c_str(), &real) == 0) ++counters_.hidden;
    return -ENOENT;
  }

  // Before an open: is the file still the one that is believed in?
  int revalidate(const std::string& path) {
    if (const int error = check(path)) return error;
    Belief& belief = look(path);
    struct stat real{};
    const bool is_there = ::lstat(backing(path).c_str(), &real) == 0;
    if (is_there && real.st_ino == belief.status.st_ino) {
      belief.status = real;
      return 0;
    }
    ++counters_.stale;
    if (++belief.stale >= kStaleAnswers) ask(path);
    return -ESTALE;
  }

  std::vector<std::string> names_in(const std::string& directory) {
    const std::string prefix = directory == "/" ? directory : directory + "/";
    std::vector<std::string> names;
    if (DIR* stream = ::opendir(backing(directory).c_str())) {
      while (const dirent* entry = ::readdir(stream)) {
        const std::string name = entry->d_name;
        if (name != "." && name != ".." && look(prefix + name).exists) names.push_back(name);
      }
      ::closedir(stream);
    }
    return names;
  }

 private:
  void take_in(const std::string& directory) {
    ask(directory.empty() ? "/" : directory);
    DIR* stream = ::opendir(backing(directory).c_str());
    if (stream == nullptr) return;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      if (S_ISDIR(ask(directory + "/" + name).status.st_mode)) take_in(directory + "/" + name);
    }
    ::closedir(stream);
  }

  const Options options_;
  std::mutex mutex_;
  std::map<std::string, Belief> beliefs_;
  std::set<std::string> known_before_;
  std::set<ino_t> own_;
  bool hollow_ = false;
  Counters counters_;
};

Node& node() { return *static_cast<Node*>(fuse_get_context()->private_data); }

// One operation of a program on the file system.
class Call {
 public:
  Call() : lock_(node().mutex()) {}

 private:
  const std::lock_guard<std::mutex> lock_;
};

int result_of(int value) { return value < 0 ? -errno : value; }

// An open file: a descriptor of the backing one, or nothing to read.
struct Handle {
  int descriptor = -1;
  bool hollow = false;
};

// NOLINTNEXTLINE(performance-no-int-to-ptr): libfuse keeps handles as numbers
Handle& handle(const fuse_file_info* info) { return *reinterpret_cast<Handle*>(info->fh); }

void keep(fuse_file_info* info, Handle opened) {
  info->fh = reinterpret_cast<std::uint64_t>(new Handle(opened));
  info->direct_io = 1;  // nothing is kept in the kernel: this program alone decides what is seen
}

// ---- the control file -----------------------------------------------------------------------------------------------

int write_control(std::string_view text) {
  const std::lock_guard lock(node().mutex());
  if (text.starts_with("names")) {
    node().look_again(true);
  } else if (text.starts_with("all")) {
    node().look_again(false);
  } else {
    return -EINVAL;
  }
  return static_cast<int>(text.size());
}

int read_control(char* bytes, std::size_t size, off_t offset) {
  const std::lock_guard lock(node().mutex());
  const Counters& counters = node().counters();
  const std::string text = "hidden " + std::to_string(counters.hidden) + "\nhollow " + std::to_string(counters.hollow) +
                           "\nstale " + std::to_string(counters.stale) + "\n";
  const auto from = std::min(text.size(), static_cast<std::size_t>(offset));
  return static_cast<int>(text.copy(bytes, size, from));
}

// ---- operations -----------------------------------------------------------------------------------------------------

void* started(fuse_conn_info*, fuse_config* config) {
  config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;  // as for direct_io
  config->use_ino = 1;
  config->hard_remove = 1;
  std::puts("mounted");
  std::fflush(stdout);
  return fuse_get_context()->private_data;
}

int get_attributes(const char* path, struct stat* status, fuse_file_info* info) {
  if (path != nullptr && path == kControl) {
    *status = {};
    status->st_mode = S_IFREG | 0600;
    status->st_nlink = 1;
    status->st_uid = ::geteuid();
    return 0;
  }
  const Call call;
  // Through a descriptor: close-to-open has made the attributes the file's own.
  if (info != nullptr && !handle(info).hollow) return result_of(::fstat(handle(info).descriptor, status));
  if (const int error = node().check(path)) return error;
  Belief& belief = node().look(path);
  if (node().is_own(belief) || S_ISDIR(belief.status.st_mode)) {
    struct stat now{};
    if (::lstat(node().backing(path).c_str(), &now) == 0 && now.st_ino == belief.status.st_ino) belief.status = now;
  }
  *status = belief.status;
  if (belief.hollow) status->st_size = 0;
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  if (path == kControl) {
    keep(info, {});
    return 0;
  }
  const Call call;
  if (const int error = node().revalidate(path)) return error;
  const bool hollow = node().look(path).hollow;
  if (hollow) ++node().counters().hollow;
  const int descriptor = ::open(node().backing(path).c_str(), info->flags & ~O_NOFOLLOW);
  if (descriptor < 0) return -errno;
  keep(info, {descriptor, hollow});
  return 0;
}

int create_file(const char* path, mode_t mode, fuse_file_info* info) {
  const Call call;
  const int descriptor = ::open(node().backing(path).c_str(), info->flags | O_CREAT, mode);
  if (descriptor < 0) {
    const int error = -errno;
    if (error == -EEXIST) node().found_to_exist(path);
    return error;
  }
  node().made(path);
  keep(info, {descriptor, false});
  return 0;
}

int read_file(const char* path, char* bytes, std::size_t size, off_t offset, fuse_file_info* info) {
  if (path != nullptr && path == kControl) return read_control(bytes, size, offset);
  const Call call;
  if (handle(info).hollow) return 0;
  return result_of(static_cast<int>(::pread(handle(info).descriptor, bytes, size, offset)));
}

int write_file(const char* path, const char* bytes, std::size_t size, off_t offset, fuse_file_info* info) {
  if (path != nullptr && path == kControl) return write_control({bytes, size});
  const Call call;
  return result_of(static_cast<int>(::pwrite(handle(info).descriptor, bytes, size, offset)));
}

int close_file(const char*, fuse_file_info* info) {
  if (handle(info).descriptor >= 0) ::close(handle(info).descriptor);
  delete &handle(info);
  return 0;
}

int sync_file(const char*, int, fuse_file_info* info) {
  const Call call;
  if (!node().options().fsync) return -EINVAL;
  return info != nullptr && handle(info).descriptor >= 0 ? result_of(::fsync(handle(info).descriptor)) : 0;
}

int sync_directory(const char*, int, fuse_file_info*) { return node().options().fsync ? 0 : -EINVAL; }

int make_link(const char* from, const char* to) {
  const Call call;
  if (!node().options().link) return -EPERM;
  if (const int error = node().check(from)) return error;
  const int error = result_of(::link(node().backing(from).c_str(), node().backing(to).c_str()));
  if (error == 0) node().made(to);
  if (error == -EEXIST) node().found_to_exist(to);
  return error;
}

int rename_file(const char* from, const char* to, unsigned flags) {
  const Call call;
  if (const int error = node().check(from)) return error;
  const int error =
      result_of(::renameat2(AT_FDCWD, node().backing(from).c_str(), AT_FDCWD, node().backing(to).c_str(), flags));
  if (error == 0) node().renamed(from, to);
  if (error == -EEXIST) node().found_to_exist(to);
  if (error == -ENOENT) node().forget(from);
  return error;
}

int remove_file(const char* path) {
  const Call call;
  if (const int error = node().check(path)) return error;
  const int error = result_of(::unlink(node().backing(path).c_str()));
  node().removed(path);
  return error;
}

int remove_directory(const char* path) {
  const Call call;
  const int error = result_of(::rmdir(node().backing(path).c_str()));
  if (error == 0) node().removed(path);
  return error;
}

int make_directory(const char* path, mode_t mode) {
  const Call call;
  const int error = result_of(::mkdir(node().backing(path).c_str(), mode));
  if (error == 0) node().made(path);
  if (error == -EEXIST) node().found_to_exist(path);
  return error;
}

// Changing what others removed meanwhile: the handle is stale.
int changed(const char* path, int error) {
  if (error != -ENOENT) return error;
  node().forget(path);
  return -ESTALE;
}

int change_mode(const char* path, mode_t mode, fuse_file_info*) {
  const Call call;
  if (const int error = node().check(path)) return error;
  return changed(path, result_of(::chmod(node().backing(path).c_str(), mode)));
}

int change_times(const char* path, const timespec* times, fuse_file_info*) {
  const Call call;
  if (const int error = node().check(path)) return error;
  return changed(path, result_of(::utimensat(AT_FDCWD, node().backing(path).c_str(), times, AT_SYMLINK_NOFOLLOW)));
}

int change_size(const char* path, off_t size, fuse_file_info*) {
  const Call call;
  if (const int error = node().check(path)) return error;
  return changed(path, result_of(::truncate(node().backing(path).c_str(), size)));
}

int list_directory(const char* path, void* out, fuse_fill_dir_t fill, off_t, fuse_file_info*, fuse_readdir_flags) {
  const Call call;
  if (const int error = node().check(path)) return error;
  for (const char* name : {".", ".."}) fill(out, name, nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  for (const std::string& name : node().names_in(path))
    fill(out, name.c_str(), nullptr, 0, static_cast<fuse_fill_dir_flags>(0));
  return 0;
}

int refuse_flock(const char*, fuse_file_info*, int) { return -ENOLCK; }
int refuse_lock(const char*, fuse_file_info*, int, struct flock*) { return -ENOLCK; }

fuse_operations operations_of(const Options& options) {
  fuse_operations operations{};
  operations.init = started;
  operations.getattr = get_attributes;
  operations.open = open_file;
  operations.create = create_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.release = close_file;
  operations.fsync = sync_file;
  operations.fsyncdir = sync_directory;
  operations.link = make_link;
  operations.rename = rename_file;
  operations.unlink = remove_file;
  operations.rmdir = remove_directory;
  operations.mkdir = make_directory;
  operations.chmod = change_mode;
  operations.utimens = change_times;
  operations.truncate = change_size;
  operations.readdir = list_directory;
  if (!options.locks) {
    operations.flock = refuse_flock;
    operations.lock = refuse_lock;
  }
  return operations;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> rest{argv[0]};
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (i == 1) {
      options.backing = word;
    } else if (word == "--snapshot") {
      options.snapshot = true;
    } else if (word == "--no-locks") {
      options.locks = false;
    } else if (word == "--no-fsync") {
      options.fsync = false;
    } else if (word == "--no-link") {
      options.link = false;
    } else {
      rest.emplace_back(word);
    }
  }
  rest.emplace_back("-f");
  std::vector<char*> arguments;
  for (std::string& word : rest) arguments.push_back(word.data());
  ::umask(0);                          // modes are the programs'
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // no mount outlives its test
  const fuse_operations operations = operations_of(options);
  Node node(std::move(options));
  return fuse_main(static_cast<int>(arguments.size()), arguments.data(), &operations, &node);
}
