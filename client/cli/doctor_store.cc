// jitc doctor: what the store's file system does with what a store needs of it. All that is written lies in one private
// directory inside the store, which goes at the end; of a store that cannot be written nothing is tried.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

#include "client/cli/cache_entries.h"
#include "client/cli/doctor.h"
#include "client/cli/progress.h"
#include "common/artifact.h"
#include "common/files.h"
#include "common/isa.h"
#include "common/owner.h"
#include "daemon/store/store.h"

namespace jitc::cli {
namespace {

namespace fs = std::filesystem;
using common::Error;
using common::ErrorKind;
using common::fail;
using common::fail_errno;
using common::Fd;
using common::Result;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLeastBytes = std::uint64_t{16} << 20, kFewBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kLeastFiles = 100, kFewFiles = 10'000;
constexpr double kSlowSync = 0.1;  // seconds
constexpr double kMostSkew = 60;   // seconds; what was used within the last hour is never evicted
constexpr double kCoarseTime = 1;  // seconds
constexpr std::size_t kSyncBytes = 64 * 1024;
constexpr int kSyncs = 5;
constexpr mode_t kMode = 0600;

constexpr const char* kOtherStore = "name a store on another file system (JITC_STORE)";

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

std::string milliseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g ms", 1000 * seconds);
  return text.data();
}

// The directories that hold what is written; those that had to be made go again.
class PrivateDirectory {
 public:
  static Result<PrivateDirectory> make(const std::string& store) {
    PrivateDirectory directory;
    std::error_code ignored;
    for (fs::path at = store; !at.empty() && !fs::exists(at, ignored); at = at.parent_path())
      directory.made_.push_back(at.string());
    const bool has_temps = fs::is_directory(fs::symlink_status(store + "/v1/tmp", ignored));
    auto made = common::make_directories(store);
    // Its name tells the store's cleaner when it may go, should this process be killed.
    directory.path_ = store + (has_temps ? "/v1/tmp/" : "/") + common::temp_name(common::Owner::this_process());
    if (made && ::mkdir(directory.path_.c_str(), 0700) == 0) return directory;
    const int error = errno;
    directory.path_.clear();
    if (!made) return std::unexpected(std::move(made.error()));
    return fail_errno(common::write_error_kind(error), error, "nothing can be written", store,
                      error == ENOSPC || error == EDQUOT ? "make room, or " + std::string(kOtherStore) : kOtherStore);
  }
  ~PrivateDirectory() {
    if (!path_.empty()) store::real_file_system().remove_tree(path_);
    for (const auto& directory : made_) ::rmdir(directory.c_str());
  }
  PrivateDirectory(PrivateDirectory&&) = default;
  PrivateDirectory(const PrivateDirectory&) = delete;
  PrivateDirectory& operator=(const PrivateDirectory&) = delete;

  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  PrivateDirectory() = default;
  std::string path_;
  std::vector<std::string> made_;  // innermost first
};

// A new file with this content.
Result<Fd> write_new(const std::string& path, std::string_view content) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, kMode));
  if (!file)
    return fail_errno(common::write_error_kind(errno), errno, "no file can be made", path,
                      "make room, or name another store (JITC_STORE)");
  if (auto written = common::write_all(file.get(), content, path); !written) {
    written.error().remedy = "make room, or name another store (JITC_STORE)";
    return std::unexpected(std::move(written.error()));
  }
  return file;
}

std::string content_of(const std::string& path) { return common::read_file(path).value_or(""); }

// ---- one check each: what was found, or why it fails ----------------------------------------------------------------

using Found = Result<Finding>;

Found check_links(const PrivateDirectory& directory) {
  auto& files = store::real_file_system();
  const std::string from = directory.file("link"), to = directory.file("linked"), taken = directory.file("taken");
  for (const auto& path : {from, taken})
    if (auto file = write_new(path, path); !file) return std::unexpected(file.error());
  const int error = files.link(from, to);
  if (error == 0) {
    if (files.link(from, taken) != -EEXIST || content_of(taken) != taken)
      return fail(ErrorKind::kStoreUnavailable, "a link replaces what has its name: artifacts would be overwritten", to,
                  kOtherStore);
    return Finding{"store.links", Verdict::kOk, "hard links work, and replace nothing", {}};
  }
  if (files.rename_no_replace(from, to) == 0)
    return Finding{"store.links",
                   Verdict::kOk,
                   std::string("no hard links (") + std::strerror(-error) + "); renames that replace nothing serve",
                   {}};
  return fail_errno(ErrorKind::kStoreUnavailable, -error,
                    "neither hard links nor renames that replace nothing: no artifact can be published", to,
                    kOtherStore);
}

Found check_rename(const PrivateDirectory& directory) {
  const std::string before = directory.file("before"), after = directory.file("after");
  const auto held = write_new(before, "old");
  if (!held) return std::unexpected(held.error());
  if (auto file = write_new(after, "new"); !file) return std::unexpected(file.error());
  if (const int error = store::real_file_system().rename(after, before); error != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, -error, "a file cannot be renamed over another", before,
                      kOtherStore);
  if (content_of(before) != "new")
    return fail(ErrorKind::kStoreUnavailable, "a rename over a file does not replace it", before, kOtherStore);
  if (common::read_all(held->get(), before).value_or("") != "old")
    return Finding{"store.rename", Verdict::kWarn, "who has a file open loses it when another gets its name",
                   "nothing wrong is loaded, since all is verified; what is replaced while it is read is read again"};
  return Finding{"store.rename", Verdict::kOk, "a rename replaces a file at once, for whoever opens it next", {}};
}

Found check_sync(const PrivateDirectory& directory) {
  const auto file = write_new(directory.file("sync"), {});
  if (!file) return std::unexpected(file.error());
  const std::string content(kSyncBytes, 'x');
  std::array<double, kSyncs> seconds{};
  for (double& one : seconds) {
    if (auto written = common::write_all(file->get(), content, "sync"); !written)
      return std::unexpected(written.error());
    const auto begin = Clock::now();
    if (::fsync(file->get()) != 0)
      return Finding{"store.fsync", Verdict::kWarn, std::string("fsync fails: ") + std::strerror(errno),
                     "an artifact may be lost when the machine stops, and is compiled again; else no harm"};
    one = since(begin);
  }
  std::ranges::nth_element(seconds, seconds.begin() + kSyncs / 2);
  const double median = seconds[kSyncs / 2];
  Finding finding{"store.fsync", Verdict::kOk, milliseconds(median) + " for 64 KiB", {}};
  if (median > kSlowSync) {
    finding.verdict = Verdict::kWarn;
    finding.remedy = "nobody waits for it, but many small compiles queue behind it: a faster file system helps";
  }
  return finding;
}

Found check_mapping(const PrivateDirectory& directory) {
  const auto file = write_new(directory.file("code"), std::string(4096, '\xc3'));
  if (!file) return std::unexpected(file.error());
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->get(), 0);
  if (mapped == MAP_FAILED)
    return Finding{"store.mapping", Verdict::kWarn,
                   std::string("files cannot be loaded as code from here (noexec?): ") + std::strerror(errno),
                   "solvers are not concerned: ranks load from memory. Programs that dlopen the paths of 'jitc submit' "
                   "need its -o on another file system"};
  ::munmap(mapped, 4096);
  return Finding{"store.mapping", Verdict::kOk, "files can be loaded as code", {}};
}

Found check_clock(const PrivateDirectory& directory) {
  const std::string path = directory.file("clock");
  const auto file = write_new(path, "x");
  if (!file) return std::unexpected(file.error());
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  struct stat status{};
  if (::fstat(file->get(), &status) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "cannot be looked at", path, kOtherStore);
  const auto seconds = [](const timespec& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  };
  const double skew = seconds(status.st_mtim) - seconds(now);
  const std::array<timespec, 2> odd = {timespec{now.tv_sec, 123'456'789}, timespec{now.tv_sec, 123'456'789}};
  struct stat fine{};
  const bool is_fine =
      ::futimens(file->get(), odd.data()) == 0 && ::fstat(file->get(), &fine) == 0 && fine.st_mtim.tv_nsec != 0;
  std::array<char, 96> text{};
  std::snprintf(text.data(), text.size(), "times are %s; the server's clock is %.1f s %s this node's",
                is_fine ? "finer than a second" : "whole seconds", std::abs(skew), skew < 0 ? "behind" : "ahead of");
  if (std::abs(skew) > kMostSkew)
    return Finding{"store.clock", Verdict::kWarn, text.data(),
                   "set the clocks (NTP): what was used last is told by these times"};
  const bool agrees = std::abs(skew) <= kCoarseTime;
  return Finding{"store.clock",
                 Verdict::kOk,
                 agrees ? std::string("times are ") + (is_fine ? "finer than a second" : "whole seconds") +
                              ", and agree with this node's clock"
                        : std::string(text.data()),
                 {}};
}

// A store of its own inside, made, filled and read by the very code that daemons use.
Result<std::unique_ptr<store::Store>> inner_store(const PrivateDirectory& directory, const Context& context) {
  return store::Store::open({.directory = directory.file("store"),
                             .read_only = {},
                             .mode = context.settings.mode("store_mode"),
                             .allow_shared = context.settings.flag("store_allow_shared")});
}

Found check_publish(const PrivateDirectory& directory, const Context& context) {
  const auto store = inner_store(directory, context);
  if (!store) return std::unexpected(store.error());
  const auto key = common::sha256("jitc doctor");
  const std::string elf = "\177ELF" + std::string(kSyncBytes, 'x');
  common::Manifest manifest;
  manifest.key = key.hex();
  manifest.name = "doctor";
  const auto begin = Clock::now();
  const auto path = (*store)->publish(key, elf, common::make_tail(elf, manifest, key, 0));
  const double seconds = since(begin);
  if (!path) return std::unexpected(path.error());
  common::StoredArtifact artifact;
  std::string reason;
  if ((*store)->look_up(key, artifact, &reason) != common::LookupOutcome::kFound)
    return fail(ErrorKind::kCorrupt, "an artifact that was written is not read back: " + reason, *path, kOtherStore);
  return Finding{
      "store.publish", Verdict::kOk, "an artifact was written, named and read back, in " + milliseconds(seconds), {}};
}

Found check_lease(const PrivateDirectory& directory, const Context& context) {
  using Kind = store::Claim::Kind;
  if (!context.settings.flag("store_lease"))
    return Finding{"store.lease", Verdict::kOk, "off (JITC_STORE_LEASE=0): each daemon compiles what it needs", {}};
  const auto one = inner_store(directory, context), other = inner_store(directory, context);
  if (!one) return std::unexpected(one.error());
  if (!other) return std::unexpected(other.error());
  const auto key = common::sha256("jitc doctor's lease");
  const auto ours = (*one)->leases().claim(key);
  const bool excludes = ours.kind == Kind::kOurs && (*other)->leases().claim(key).kind == Kind::kTheirs;
  const bool beats = excludes && (*one)->leases().beat(key, ours.text, 1);
  (*one)->leases().release(key, ours.text);
  const auto next = (*other)->leases().claim(key);
  (*other)->leases().release(key, next.text);
  if (excludes && beats && next.kind == Kind::kOurs)
    return Finding{"store.lease", Verdict::kOk, "one daemon at a time holds a lease, and gives it back", {}};
  return Finding{"store.lease", Verdict::kWarn, "leases do not exclude each other here",
                 "the same source may be compiled on several nodes at once, with the same result; JITC_STORE_LEASE=0 "
                 "spares the tries"};
}

// ---- without writing ------------------------------------------------------------------------------------------------

void examine_space(const std::string& existing, const std::string& check, const Teller& tell) {
  struct statvfs space{};
  if (::statvfs(existing.c_str(), &space) != 0)
    return tell(
        {check, Verdict::kFail, std::string("the file system cannot be asked: ") + std::strerror(errno), kOtherStore});
  const std::uint64_t bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  const auto verdict = [](std::uint64_t have, std::uint64_t least, std::uint64_t few) {
    return have < least ? Verdict::kFail : have < few ? Verdict::kWarn : Verdict::kOk;
  };
  if (space.f_blocks == 0) return tell({"store.space", Verdict::kOk, "the file system does not say what is free", {}});
  const Verdict room = verdict(bytes, kLeastBytes, kFewBytes);
  tell({"store.space", room, bytes_text(bytes) + " free (a quota may leave less)",
        room == Verdict::kOk ? "" : "make room ('jitc cache gc --max-bytes 1G'), or " + std::string(kOtherStore)});
  if (space.f_files == 0) return tell({"store.inodes", Verdict::kOk, "the file system counts none", {}});
  const Verdict files = verdict(space.f_favail, kLeastFiles, kFewFiles);
  tell({"store.inodes", files, std::to_string(space.f_favail) + " free",
        files == Verdict::kOk ? "" : "remove files, or " + std::string(kOtherStore)});
}

std::string nearest_existing(const std::string& path) {
  fs::path at = path;
  for (std::error_code error; !fs::exists(at, error) && at.has_relative_path();) at = at.parent_path();
  return at.empty() ? "." : at.string();
}

// May it be written, as far as can be told without writing?
std::optional<Error> read_only(const std::string& existing) {
  struct statvfs mounted{};
  if (::statvfs(existing.c_str(), &mounted) == 0 && (mounted.f_flag & ST_RDONLY) != 0)
    return fail(ErrorKind::kStoreUnavailable, "its file system is mounted read-only", existing,
                "read it as a layer (JITC_STORE_READONLY), and name a store that can be written (JITC_STORE)")
        .error();
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    return fail_errno(ErrorKind::kStoreUnavailable, errno, "this user may not write it", existing,
                      "read it as a layer (JITC_STORE_READONLY), and name a store of your own (JITC_STORE)")
        .error();
  return std::nullopt;
}

void tell_file_system(const std::string& check, const std::string& existing, const Teller& tell) {
  const std::string name = file_system_name(existing);
  std::string found = name.empty() ? "unknown" : name;
  if (is_shared_file_system(name)) found += ", which other nodes may share";
  if (name == "tmpfs" || name == "ramfs") found += ": in memory, gone when the machine restarts";
  tell({check, Verdict::kOk, found, {}});
}

}  // namespace

void examine_store(const Context& context, const common::StoreLayer& layer, const Teller& tell) {
  tell.step("store.directory");
  const auto path = common::resolve_store(layer);
  if (!path) return tell(failed("store.directory", path.error()));
  const auto is_there = has_store({*path, layer.trust});
  if (!is_there) return tell(failed("store.directory", is_there.error()));
  const std::string existing = nearest_existing(*path);
  const auto closed = read_only(existing);
  if (closed) {
    tell(failed("store.directory", *closed));
  } else {
    tell({"store.directory",
          Verdict::kOk,
          *path + (*is_there ? "" : ": there is no store yet; the first use makes it"),
          {}});
  }
  tell.step("store.file_system");
  tell_file_system("store.file_system", existing, tell);
  tell.step("store.space");
  examine_space(existing, "store.space", tell);
  if (closed) return;

  tell.step("store.write");
  const auto directory = PrivateDirectory::make(*path);
  if (!directory) return tell(failed("store.write", directory.error()));
  const auto check = [&](const char* name, const auto& look) {
    if (interrupted()) return;
    tell.step(name);
    const Found found = look();
    tell(found ? *found : failed(name, found.error()));
  };
  check("store.links", [&] { return check_links(*directory); });
  check("store.rename", [&] { return check_rename(*directory); });
  check("store.fsync", [&] { return check_sync(*directory); });
  check("store.mapping", [&] { return check_mapping(*directory); });
  check("store.clock", [&] { return check_clock(*directory); });
  check("store.publish", [&] { return check_publish(*directory, context); });
  check("store.lease", [&] { return check_lease(*directory, context); });
  tell.step("store.remove");
}

void examine_layer(const common::StoreLayer& layer, const Teller& tell) {
  const std::string check = "layer";
  tell.step(check);
  const auto opened = common::open_layer(layer);
  if (!opened) return tell(failed(check, opened.error()));
  std::vector<std::string> names;
  if (const int error = store::real_file_system().list(opened->path, names); error != 0)
    return tell(failed(check, fail_errno(ErrorKind::kStoreUnavailable, -error, "cannot be listed", opened->path,
                                         "correct JITC_STORE_READONLY, or see that the directory can be read")
                                  .error()));
  const auto is_there = has_store(*opened);
  if (!is_there) return tell(failed(check, is_there.error()));
  if (!*is_there)
    return tell({check, Verdict::kWarn, opened->path + ": no store: nothing is read from it",
                 "fill it ('jitc warm --store'), or take it out of JITC_STORE_READONLY"});
  tell({check, Verdict::kOk, opened->path + ": read, on " + file_system_name(opened->path), {}});
}

void examine_stage_directory(const std::string& path, const Teller& tell) {
  tell.step("stage_dir");
  // Without a name: nothing is left, whatever happens.
  const Fd file(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kMode));
  if (!file || ::ftruncate(file.get(), 4096) != 0)
    return tell(failed(
        "stage_dir",
        fail_errno(ErrorKind::kNotLoaded, errno, "no file can be made", path, "correct JITC_STAGE_DIR").error()));
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0);
  if (mapped == MAP_FAILED)
    return tell(failed("stage_dir", fail_errno(ErrorKind::kNotLoaded, errno, "no code can be loaded from it", path,
                                               "name a directory that is not mounted noexec (JITC_STAGE_DIR)")
                                        .error()));
  ::munmap(mapped, 4096);
  tell({"stage_dir", Verdict::kOk, path + ": modules can be loaded from it", {}});
}

void examine_memory_files(const Teller& tell) {
  tell.step("memory_files");
  const auto file = common::sealed_memfd("jitc-doctor", std::string(4096, '\xc3'), /*executable=*/true);
  if (!file) return tell(failed("memory_files", file.error()));
  void* mapped = ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file->get(), 0);
  if (mapped == MAP_FAILED)
    return tell(
        failed("memory_files", fail_errno(ErrorKind::kNotLoaded, errno, "no code can be loaded from memory files", "",
                                          "set JITC_STAGE_DIR to a directory of your own that is not mounted noexec")
                                   .error()));
  ::munmap(mapped, 4096);
  tell({"memory_files", Verdict::kOk, "modules can be loaded from memory", {}});
}

std::string file_system_name(const std::string& path) {
  struct statfs status{};
  if (::statfs(path.c_str(), &status) != 0) return {};
  struct Known {
    std::uint32_t type;
    const char* name;
  };
  // Most stand in linux/magic.h, those of parallel file systems in none of the system's headers.
  static constexpr std::array<Known, 18> kKnown = {{{0xEF53, "ext4"},
                                                    {0x58465342, "xfs"},
                                                    {0x9123683E, "btrfs"},
                                                    {0x01021994, "tmpfs"},
                                                    {0x858458F6, "ramfs"},
                                                    {0x794C7630, "overlay"},
                                                    {0x6969, "nfs"},
                                                    {0x0BD00BD0, "lustre"},
                                                    {0x47504653, "gpfs"},
                                                    {0x19830326, "beegfs"},
                                                    {0x00C36400, "ceph"},
                                                    {0x65735546, "fuse"},
                                                    {0xFF534D42, "cifs"},
                                                    {0xFE534D42, "smb2"},
                                                    {0x2FC12FC1, "zfs"},
                                                    {0x6B414653, "afs"},
                                                    {0x01021997, "9p"},
                                                    {0xF2F52010, "f2fs"}}};
  const auto type = static_cast<std::uint32_t>(status.f_type);
  const auto known = std::ranges::find(kKnown, type, &Known::type);
  if (known != kKnown.end()) return known->name;
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%x", type);
  return text.data();
}

bool is_shared_file_system(const std::string& name) {
  constexpr std::array<std::string_view, 10> kShared = {"nfs",  "lustre", "gpfs", "beegfs", "ceph",
                                                        "fuse", "cifs",   "smb2", "afs",    "9p"};
  return std::ranges::find(kShared, name) != kShared.end();
}

}  // namespace jitc::cli
