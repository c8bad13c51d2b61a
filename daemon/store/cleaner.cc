#include "daemon/store/cleaner.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <functional>
#include <utility>

#include "common/digest.h"
#include "common/files.h"

namespace jitc::store {
namespace {

using namespace std::chrono_literals;

constexpr auto kKept = 1h;                // used so recently: never evicted
constexpr auto kClockSlack = 1min;        // between nodes
constexpr auto kForeignTempLife = 24h;    // since the last write: a publish takes seconds, a lease beats every two
constexpr std::size_t kQuarantined = 16;  // what is kept there, for whoever wants to know what happened
constexpr std::uint64_t kQuarantinedBytes = std::uint64_t{64} << 20;
constexpr auto kQuarantineLife = 24h * 30;
constexpr const char* kNotListed = "cannot be listed";
constexpr const char* kNotRemoved = "cannot be removed";
constexpr double kFull = 0.9;  // cleaned down to this part of a limit, so that the next publish needs no cleaning

// At most one cleaner per store, user and node: an abstract socket, which ends with its process and lies on no file
// system. Other nodes may clean at the same time: they find files gone, which is normal. Anybody may bind a name: who
// finds it taken by another user cleans all the same.
class NodeTurn {
 public:
  explicit NodeTurn(const std::string& store) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const std::string name =
        "jitc-clean-" + std::to_string(::geteuid()) + "-" + common::sha256(store).hex().substr(0, 32);
    address_.sun_family = AF_UNIX;
    std::ranges::copy(name, address_.sun_path + 1);  // the first byte stays 0: abstract
    length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    const bool is_bound = fd_ && ::bind(fd_.get(), address(), length_) == 0;
    if (is_bound) ::listen(fd_.get(), SOMAXCONN);  // tells others whose it is; nobody is answered
    taken_ = is_bound || !is_held_by_us();
  }
  bool taken() const { return taken_; }

 private:
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&address_); }

  bool is_held_by_us() const {
    ucred holder{};
    socklen_t size = sizeof holder;
    return fd_ && ::connect(fd_.get(), address(), length_) == 0 &&
           ::getsockopt(fd_.get(), SOL_SOCKET, SO_PEERCRED, &holder, &size) == 0 && holder.uid == ::geteuid();
  }

  common::Fd fd_;
  sockaddr_un address_{};
  socklen_t length_ = 0;
  bool taken_ = false;
};

std::optional<common::Digest> key_of(std::string_view name) {
  return name.ends_with(".so") ? common::Digest::from_hex(name.substr(0, name.size() - 3)) : std::nullopt;
}

// What is from the future says nothing about its last use (a clock was wrong, here or there): it is not protected, and
// if it stays it counts as used now, so that it takes its place in the order from now on.
bool is_from_the_future(FileTime used, FileTime now) { return used > now + kClockSlack; }
bool may_go(FileTime used, FileTime now) { return used + kKept <= now || is_from_the_future(used, now); }

// In seconds: a limit of centuries has more nanoseconds than fit.
bool is_older_than(std::chrono::seconds age, FileTime used, FileTime now) {
  return std::chrono::floor<std::chrono::seconds>(now - used) >= age;
}

std::string_view name_in(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Cleaner::Cleaner(FileSystem& files, const Directories& directories, Leases& leases)
    : files_(files), directories_(directories), leases_(leases), self_(common::Owner::this_process()) {}

Cleaned Cleaner::clean(const CleanLimits& limits) {
  Cleaned cleaned;
  const NodeTurn turn(directories_.store());
  if (!turn.taken()) return cleaned;
  cleaned.done = true;
  if (auto checked = directories_.check_care(); !checked) {
    cleaned.problem = std::move(checked.error());
    return cleaned;
  }
  remove_stale_temps(limits.dry_run, cleaned);
  Shards found = look_into_shards(cleaned);
  cleaned.done = !stopped_;  // what was seen may not be all
  if (!cleaned.done) return cleaned;
  remove_stale_leases(found.leases, limits.dry_run, cleaned);
  trim_quarantine(limits.dry_run, cleaned);
  evict(std::move(found.artifacts), limits, cleaned);
  return cleaned;
}

void Cleaner::trim_quarantine() {
  Cleaned cleaned;
  trim_quarantine(false, cleaned);
}

// False when it is a problem, of which the first is told. What is not there, or no longer, is none.
bool Cleaner::note(int error, const char* what, const std::string& path, Cleaned& cleaned) {
  if (error == 0 || error == -ENOENT) return true;
  if (!cleaned.problem) cleaned.problem = store_error(-error, what, path).error();
  return false;
}

// Whatever is gone by the time it is looked at is not there.
std::vector<Cleaner::Entry> Cleaner::all_in(const std::string& directory, Cleaned& cleaned) const {
  std::vector<std::string> names;
  note(files_.list(directory, names), kNotListed, directory, cleaned);
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    Entry entry{.path = directory};
    entry.path.append("/").append(name);
    if (files_.status(entry.path, entry.info) == 0) entries.push_back(std::move(entry));
  }
  return entries;
}

Cleaner::Shards Cleaner::look_into_shards(Cleaned& cleaned) const {
  std::vector<std::string> shards;
  Shards found;
  cleaned.complete = note(files_.list(directories_.version(), shards), kNotListed, directories_.version(), cleaned);
  for (const std::string& shard : shards) {
    if (stopped_) break;
    if (shard.size() == 2) look_into(shard, found, cleaned);
  }
  return found;
}

std::string Cleaner::path_of(const Artifact& artifact) const {
  std::string path = directories_.version() + "/";
  path.append(artifact.shard.data(), artifact.shard.size()).append("/").append(artifact.key.hex()).append(".so");
  return path;
}

void Cleaner::look_into(const std::string& shard, Shards& found, Cleaned& cleaned) const {
  const std::string directory = directories_.version() + "/" + shard;
  std::vector<std::string> names;
  cleaned.complete &= note(files_.list(directory, names), kNotListed, directory, cleaned);
  for (const std::string& name : names) {
    const auto key = key_of(name);
    if (!key && !Leases::is_name(name)) continue;
    Entry entry{.path = directory};
    entry.path.append("/").append(name);
    if (const int error = files_.status(entry.path, entry.info); error != 0) {
      cleaned.complete &= note(error, "cannot be looked at", entry.path, cleaned);
    } else if (!key) {
      found.leases.push_back(std::move(entry));
    } else if (entry.info.regular) {
      found.artifacts.push_back({*key, {shard[0], shard[1]}, entry.info.size, entry.info.used});
    }
  }
}

void Cleaner::evict(std::vector<Artifact> artifacts, const CleanLimits& limits, Cleaned& cleaned) {
  cleaned.entries_left = artifacts.size();
  for (const Artifact& artifact : artifacts) cleaned.bytes_left += artifact.size;
  // Of few entries one may always stay.
  const auto above = [&cleaned, &limits](double part) {
    const double entries = std::max(1.0, part * static_cast<double>(limits.entries));
    return (limits.bytes > 0 && static_cast<double>(cleaned.bytes_left) > part * static_cast<double>(limits.bytes)) ||
           (limits.entries > 0 && static_cast<double>(cleaned.entries_left) > entries);
  };
  const FileTime now = files_.now();
  const bool clean = above(1);
  const auto too_old = [&](FileTime used) { return limits.age > 0s && is_older_than(limits.age, used, now); };
  std::ranges::sort(artifacts, {}, &Artifact::used);
  for (const Artifact& artifact : artifacts) {
    if (stopped_) return;
    if (((clean && above(kFull)) || too_old(artifact.used)) && may_go(artifact.used, now)) {
      const Removal removal = remove_unused(artifact, limits.dry_run, cleaned);
      if (removal == Removal::kKept) continue;
      // What another cleaner removed is room as well: each must not make it again.
      if (removal == Removal::kRemoved) {
        ++cleaned.evicted;
        cleaned.evicted_bytes += artifact.size;
      }
      --cleaned.entries_left;
      cleaned.bytes_left -= artifact.size;
    } else if (is_from_the_future(artifact.used, now) && !limits.dry_run) {
      files_.touch(path_of(artifact));
    }
  }
  cleaned.held_up = clean && above(kFull);
}

// Somebody may have used it since the scan; between this look and the removal a use can still slip in, which costs a
// rebuild, never a reader: who has it open keeps it.
Cleaner::Removal Cleaner::remove_unused(const Artifact& artifact, bool dry_run, Cleaned& cleaned) {
  const std::string path = path_of(artifact);
  FileInfo info;
  int error = files_.status(path, info);
  if (error == 0 && info.used != artifact.used) return Removal::kKept;
  if (error == 0 && !dry_run) error = files_.unlink(path);
  if (error == -ENOENT) return Removal::kGone;
  note(error, kNotRemoved, path, cleaned);
  return error == 0 ? Removal::kRemoved : Removal::kKept;
}

// One that nothing is known of counts from its time; one of the future counts from now.
bool Cleaner::is_stale(const std::optional<common::Owner>& owner, const Entry& entry, bool dry_run) {
  const auto life = owner ? common::life_of(*owner, self_) : common::Life::kUnknown;
  if (life != common::Life::kUnknown) return life == common::Life::kDead;
  const FileTime now = files_.now();
  if (is_from_the_future(entry.info.used, now) && !dry_run) files_.touch(entry.path);
  return entry.info.used + kForeignTempLife < now;
}

void Cleaner::remove_stale_temps(bool dry_run, Cleaned& cleaned) {
  for (const Entry& entry : all_in(directories_.temps(), cleaned)) {
    if (!entry.info.regular || !is_stale(common::owner_of(name_in(entry.path)), entry, dry_run)) continue;
    const int error = dry_run ? 0 : files_.unlink(entry.path);
    note(error, kNotRemoved, entry.path, cleaned);
    if (error == 0) ++cleaned.stale_temps;
  }
}

// Who asks for the key of one takes it over sooner: these are of keys that nobody asks for. What cannot be read, and no
// lease of anybody's, keeps its key without one: it has the time of a foreign temporary file.
void Cleaner::remove_stale_leases(const std::vector<Entry>& leases, bool dry_run, Cleaned& cleaned) {
  for (const Entry& entry : leases) {
    const auto text = entry.info.regular ? leases_.read(entry.path) : std::nullopt;
    if (!is_stale(text ? Leases::holder_of(*text) : std::nullopt, entry, dry_run)) continue;
    if (dry_run || (text ? leases_.remove(entry.path, *text) : remove_whatever(entry, cleaned))) ++cleaned.stale_leases;
  }
}

bool Cleaner::remove_whatever(const Entry& entry, Cleaned& cleaned) {
  const int error = entry.info.regular ? files_.unlink(entry.path) : files_.remove_tree(entry.path);
  note(error, kNotRemoved, entry.path, cleaned);
  return error == 0;
}

// The time of what is there says when it came. Links, directories and the like are there too.
void Cleaner::trim_quarantine(bool dry_run, Cleaned& cleaned) {
  const FileTime now = files_.now();
  std::vector<Entry> entries = all_in(directories_.quarantine(), cleaned);
  for (Entry& entry : entries) {
    if (!is_from_the_future(entry.info.used, now)) continue;
    entry.info.used = now - kQuarantineLife / 2;  // behind what came lately, and not too old
    if (!dry_run) files_.touch(entry.path);
  }
  std::ranges::sort(entries, std::ranges::greater(), [](const Entry& entry) { return entry.info.used; });
  std::uint64_t kept = 0, bytes = 0;
  for (const Entry& entry : entries) {
    const bool keep = kept < kQuarantined && bytes + entry.info.size <= kQuarantinedBytes &&
                      !is_older_than(kQuarantineLife, entry.info.used, now);
    if (keep) {
      ++kept;
      bytes += entry.info.size;
    } else if (dry_run || remove_whatever(entry, cleaned)) {
      ++cleaned.quarantine_removed;
    }
  }
}

}  // namespace jitc::store
