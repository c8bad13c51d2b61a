// Keeps the store within its limits and free of what dead writers left.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/owner.h"
#include "daemon/store/directories.h"
#include "daemon/store/file_system.h"
#include "daemon/store/leases.h"

namespace jitc::store {

struct CleanLimits {
  std::uint64_t bytes = 0, entries = 0;  // 0: none
  std::chrono::seconds age{0};           // since the last use; 0: none
  bool dry_run = false;                  // only say what would go
};

struct Cleaned {
  bool done = false;      // false: somebody else on this node does it
  bool complete = false;  // every entry was seen: what is left is known
  // The first thing that could not be listed, looked at or removed.
  std::optional<common::Error> problem;
  std::uint64_t evicted = 0, evicted_bytes = 0, stale_temps = 0, stale_leases = 0, quarantine_removed = 0;
  std::uint64_t entries_left = 0, bytes_left = 0;
  bool held_up = false;  // more should have gone: it was used too lately, or cannot be removed
};

class Cleaner {
 public:
  Cleaner(FileSystem& files, const Directories& directories, Leases& leases);
  // Nothing of it when the store's directories are no longer its own.
  Cleaned clean(const CleanLimits& limits);
  // Down to what the quarantine may keep. Any number at once.
  void trim_quarantine();
  // clean() returns soon then, also one that runs: half done, which is as good as not begun.
  void stop() { stopped_ = true; }

 private:
  struct Entry {
    std::string path;
    FileInfo info;
  };
  // There may be a million.
  struct Artifact {
    common::Digest key;
    std::array<char, 2> shard{};  // where it is; its own, unless somebody has moved it
    std::uint64_t size = 0;
    FileTime used;
  };
  struct Shards {
    std::vector<Artifact> artifacts;
    std::vector<Entry> leases;
  };
  static bool note(int error, const char* what, const std::string& path, Cleaned& cleaned);
  Shards look_into_shards(Cleaned& cleaned) const;
  void look_into(const std::string& shard, Shards& found, Cleaned& cleaned) const;
  std::string path_of(const Artifact& artifact) const;
  std::vector<Entry> all_in(const std::string& directory, Cleaned& cleaned) const;
  void evict(std::vector<Artifact> artifacts, const CleanLimits& limits, Cleaned& cleaned);
  enum class Removal { kRemoved, kGone, kKept };
  Removal remove_unused(const Artifact& artifact, bool dry_run, Cleaned& cleaned);
  bool remove_whatever(const Entry& entry, Cleaned& cleaned);
  bool is_stale(const std::optional<common::Owner>& owner, const Entry& entry, bool dry_run);
  void remove_stale_temps(bool dry_run, Cleaned& cleaned);
  void remove_stale_leases(const std::vector<Entry>& leases, bool dry_run, Cleaned& cleaned);
  void trim_quarantine(bool dry_run, Cleaned& cleaned);

  FileSystem& files_;
  const Directories& directories_;
  Leases& leases_;
  const common::Owner self_;
  std::atomic<bool> stopped_{false};
};

}  // namespace jitc::store
