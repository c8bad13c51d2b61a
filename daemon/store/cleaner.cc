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
constexpr double kFull = 0.9;  // cleaned down to this part of a limit, so that the next publish needs no cleaning

// At most one cleaner per store, user and node: a bound abstract socket, which ends with its process and lies on no
// file system. Other nodes may clean at the same time: they find files gone, which is normal.
class NodeTurn {
 public:
  explicit NodeTurn(const std::string& store) : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const std::string name =
        "jitc-clean-" + std::to_string(::geteuid()) + "-" + common::sha256(store).hex().substr(0, 32);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::ranges::copy(name, address.sun_path + 1);  // the first byte stays 0: abstract
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    taken_ = fd_ && ::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), length) == 0;
  }
  bool taken() const { return taken_; }

 private:
  common::Fd fd_;
  bool taken_ = false;
};

std::optional<common::Digest> key_of(std::string_view name) {
  return name.ends_with(".so") ? common::Digest::from_hex(name.substr(0, name.size() - 3)) : std::nullopt;
}

// An artifact from the future says nothing about its last use (a clock was wrong, here or there): it is not protected,
// and if it stays it counts as used now, so that it takes its place in the order from now on.
bool is_from_the_future(FileTime used, FileTime now) { return used > now + kClockSlack; }
bool may_go(FileTime used, FileTime now) { return used + kKept <= now || is_from_the_future(used, now); }

}  // namespace

Cleaner::Cleaner(FileSystem& files, const Directories& directories, Leases& leases)
    : files_(files), directories_(directories), leases_(leases), self_(common::Owner::this_process()) {}

Cleaned Cleaner::clean(const CleanLimits& limits) {
  Cleaned cleaned;
  const NodeTurn turn(directories_.store());
  if (!turn.taken()) return cleaned;
  cleaned.done = true;
  if (!directories_.check_care()) return cleaned;
  cleaned.stale_temps = remove_stale_temps(limits.dry_run);
  Shards found = look_into_shards();
  cleaned.done = !stopped_;  // what was seen may not be all
  if (!cleaned.done) return cleaned;
  cleaned.stale_leases = remove_stale_leases(found.leases, limits.dry_run);
  cleaned.quarantine_removed = trim_quarantine(limits.dry_run);
  evict(std::move(found.artifacts), limits, cleaned);
  return cleaned;
}

// Whatever is gone by the time it is looked at is not there.
std::vector<Cleaner::Entry> Cleaner::all_in(const std::string& directory) const {
  std::vector<std::string> names;
  files_.list(directory, names);
  std::vector<Entry> entries;
  for (const std::string& name : names) {
    Entry entry{.path = directory};
    entry.path.append("/").append(name);
    if (files_.status(entry.path, entry.info) == 0) entries.push_back(std::move(entry));
  }
  return entries;
}

std::vector<Cleaner::Entry> Cleaner::files_in(const std::string& directory) const {
  std::vector<Entry> entries = all_in(directory);
  std::erase_if(entries, [](const Entry& entry) { return !entry.info.regular; });
  return entries;
}

Cleaner::Shards Cleaner::look_into_shards() const {
  std::vector<std::string> shards;
  files_.list(directories_.version(), shards);
  Shards found;
  for (const std::string& shard : shards) {
    if (stopped_) break;
    if (shard.size() == 2) look_into(shard, found);
  }
  return found;
}

std::string Cleaner::path_of(const Artifact& artifact) const {
  std::string path = directories_.version() + "/";
  path.append(artifact.shard.data(), artifact.shard.size()).append("/").append(artifact.key.hex()).append(".so");
  return path;
}

void Cleaner::look_into(const std::string& shard, Shards& found) const {
  const std::string directory = directories_.version() + "/" + shard + "/";
  std::vector<std::string> names;
  files_.list(directories_.version() + "/" + shard, names);
  for (const std::string& name : names) {
    const auto key = key_of(name);
    if (!key && !Leases::is_name(name)) continue;
    Entry entry{.path = directory + name};
    if (files_.status(entry.path, entry.info) != 0 || !entry.info.regular) continue;
    if (key) {
      found.artifacts.push_back({*key, {shard[0], shard[1]}, entry.info.size, entry.info.used});
    } else {
      found.leases.push_back(std::move(entry));
    }
  }
}

void Cleaner::evict(std::vector<Artifact> artifacts, const CleanLimits& limits, Cleaned& cleaned) {
  cleaned.entries_left = artifacts.size();
  for (const Artifact& artifact : artifacts) cleaned.bytes_left += artifact.size;
  const auto above = [&cleaned, &limits](double part) {
    return (limits.bytes > 0 && static_cast<double>(cleaned.bytes_left) > part * static_cast<double>(limits.bytes)) ||
           (limits.entries > 0 &&
            static_cast<double>(cleaned.entries_left) > part * static_cast<double>(limits.entries));
  };
  const FileTime now = files_.now();
  const bool clean = above(1);
  const auto too_old = [&](FileTime used) { return limits.age > 0s && used + limits.age <= now; };
  std::ranges::sort(artifacts, {}, &Artifact::used);
  for (const Artifact& artifact : artifacts) {
    if (stopped_) return;
    if (((clean && above(kFull)) || too_old(artifact.used)) && may_go(artifact.used, now)) {
      const Removal removal = remove_unused(artifact, limits.dry_run);
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
Cleaner::Removal Cleaner::remove_unused(const Artifact& artifact, bool dry_run) {
  const std::string path = path_of(artifact);
  FileInfo info;
  int error = files_.status(path, info);
  if (error == 0 && info.used != artifact.used) return Removal::kKept;
  if (error == 0 && !dry_run) error = files_.unlink(path);
  if (error == -ENOENT) return Removal::kGone;
  return error == 0 ? Removal::kRemoved : Removal::kKept;
}

bool Cleaner::is_stale(const std::optional<common::Owner>& owner, const Entry& entry) const {
  const auto life = owner ? common::life_of(*owner, self_) : common::Life::kUnknown;
  const bool old = entry.info.used + kForeignTempLife < files_.now();
  return life == common::Life::kDead || (life == common::Life::kUnknown && old);
}

std::uint64_t Cleaner::remove_stale_temps(bool dry_run) {
  std::uint64_t removed = 0;
  for (const Entry& entry : files_in(directories_.temps())) {
    const auto owner = common::owner_of(std::string_view(entry.path).substr(entry.path.rfind('/') + 1));
    if (is_stale(owner, entry) && (dry_run || files_.unlink(entry.path) == 0)) ++removed;
  }
  return removed;
}

// Who asks for the key of one takes it over sooner: these are of keys that nobody asks for.
std::uint64_t Cleaner::remove_stale_leases(const std::vector<Entry>& leases, bool dry_run) {
  std::uint64_t removed = 0;
  for (const Entry& entry : leases) {
    const auto text = leases_.read(entry.path);
    const bool stale = text && is_stale(Leases::holder_of(*text), entry);
    if (stale && (dry_run || leases_.remove(entry.path, *text))) ++removed;
  }
  return removed;
}

// The time of what is there says when it came. Links and the like are there too.
std::uint64_t Cleaner::trim_quarantine(bool dry_run) {
  std::vector<Entry> entries = all_in(directories_.quarantine());
  std::ranges::sort(entries, std::ranges::greater(), [](const Entry& entry) { return entry.info.used; });
  std::uint64_t kept = 0, bytes = 0, removed = 0;
  for (const Entry& entry : entries) {
    const bool keep = kept < kQuarantined && bytes + entry.info.size <= kQuarantinedBytes &&
                      entry.info.used + kQuarantineLife > files_.now();
    if (keep) {
      ++kept;
      bytes += entry.info.size;
    } else if (dry_run || files_.unlink(entry.path) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace jitc::store
