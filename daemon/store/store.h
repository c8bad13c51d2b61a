// The daemon's store: layers to read from, one of them to write to. Layout (below the writable directory):
//
//   v1/<2 hex>/<64 hex>.so     artifacts (common/artifact.h). A final name is linked once, whole, and never overwritten
//   v1/<2 hex>/<64 hex>.lease  who compiles it now (daemon/store/leases.h)
//   v1/tmp/<temp name>         what is being written (common/owner.h)
//   v1/quarantine/...          what did not verify, the last few
//
// The directory may be shared between nodes and daemons: no locks, only link, rename and unlink, each of which may find
// that somebody else was faster. Every function may be called from several threads at once.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/store_reader.h"
#include "daemon/store/cleaner.h"
#include "daemon/store/directories.h"
#include "daemon/store/file_system.h"
#include "daemon/store/leases.h"
#include "daemon/store/publisher.h"

namespace jitc::store {

struct Options {
  std::string directory;                              // written to; made when absent
  std::vector<std::string> read_only;                 // layers that are read before it
  std::uint64_t max_bytes = std::uint64_t{10} << 30;  // 0: no limit
  std::uint64_t max_entries = 1'000'000;              // 0: no limit
  std::chrono::seconds max_age{0};                    // since the last use; 0: no limit
  mode_t mode = 0600;                                 // of entries; directories get the matching search bits
  bool allow_shared = false;                          // a group's store: others may write it, and are believed
  bool make = true;                                   // its directories; false: to look only
};

struct Counters {
  std::uint64_t published = 0, quarantined = 0, evicted = 0, stale_temps = 0;
  std::uint64_t untrusted = 0;  // finds that others than the layer believes can have made
};

class Store {
 public:
  // kRefused when others could have put something into the directory. One that cannot be made or written is no error
  // here: what it has is served, and publish() says why it cannot. A read-only layer that others than its owner could
  // have changed is left out: see refused_layers(). One that cannot be read stays: see unread_layers().
  static common::Result<std::unique_ptr<Store>> open(Options options, FileSystem& files = real_file_system());

  // As StoreReader. A find counts as a use; what does not verify in the writable layer is moved away. What is not
  // trusted stays until its key is published anew.
  common::LookupOutcome look_up(const common::Digest& key, common::StoredArtifact& artifact,
                                std::string* reason = nullptr);

  // Makes `elf` and `tail` (common::make_tail) the entry of this key, and returns its path. When another writer was
  // faster its entry stands and is as good. Afterwards the final name is either absent or a whole file.
  // kStoreFull, kStoreUnavailable: the caller still has the bytes.
  common::Result<std::string> publish(const common::Digest& key, std::string_view elf, std::string_view tail);

  // Moves the entry of this key to the quarantine although it verifies: somebody knows that it is not what the key
  // says.
  void set_aside(const common::Digest& key);

  // Makes an entry survive a crash of the machine; to be called after the reply. A failure costs a rebuild at most.
  common::Result<void> sync(const std::string& path);

  // Moves the entry of this key to the quarantine if it does not verify, or others can have made it. Was there one, and
  // is it gone?
  bool quarantine(const common::Digest& key);

  enum class Removal { kRemoved, kGone, kKept };
  // Takes this key's entry out of the writable layer, whatever it is. Who has it open keeps it. kGone: there is none.
  Removal remove(const common::Digest& key);

  // A use that was not a look_up() here.
  void touch(const common::Digest& key);

  // Is it time for clean()? Cheap.
  bool wants_cleaning() const;
  // Removes entries not used for longer than the limit and the least recently used ones above the others (never those
  // used within the last hour), temporary files of dead writers, old quarantined ones. One at a time on a node: beside
  // another it returns at once, with nothing.
  Cleaned clean(bool dry_run = false);
  // At the end: clean() does nothing any more, and one that runs returns soon.
  void stop_cleaning() { cleaner_.stop(); }

  // The manifests of the last used artifacts of all layers, at most so many and only what is found within `patience`;
  // the last used at the end. What cannot be read is left out.
  std::vector<common::Manifest> newest_manifests(std::size_t most, std::chrono::milliseconds patience) const;

  Leases& leases() { return leases_; }

  Counters counters() const;
  std::uint64_t size_bytes() const { return bytes_; }  // at the last clean(), and what was published since
  const std::string& directory() const { return options_.directory; }  // without symbolic links
  // What is read, in this order; the last one is the writable one.
  const std::vector<common::StoreLayer>& layers() const { return reader_.layers(); }
  // Why read-only layers that the options name are not read.
  const std::vector<common::Error>& refused_layers() const { return refused_layers_; }
  // Why those that are could not be, when the store was opened: absent, perhaps mounted later, or not to be listed.
  const std::vector<common::Error>& unread_layers() const { return unread_layers_; }

 private:
  Store(Options options, std::vector<common::StoreLayer> layers, FileSystem& files);
  bool is_above_limits() const;
  bool is_aged() const;
  bool has_passed(FileTime::duration time) const;
  void count_quarantined(unsigned pieces);

  Options options_;
  FileSystem& files_;
  common::StoreReader reader_;
  std::vector<common::Error> refused_layers_, unread_layers_;
  Directories directories_;
  Publisher publisher_;
  Leases leases_;
  Cleaner cleaner_;
  std::atomic<std::uint64_t> published_{0}, quarantined_{0}, evicted_{0}, stale_temps_{0}, untrusted_{0};
  std::atomic<std::uint64_t> bytes_{0}, entries_{0};
  // Others write too: look again now and then, and once at the start.
  static constexpr std::uint64_t kPublishesBetweenScans = 1000;
  std::atomic<std::uint64_t> publishes_since_scan_{kPublishesBetweenScans};
  std::atomic<FileTime::rep> cleaned_at_{0};  // of FileTime
  std::atomic<bool> held_up_{false};          // the last clean() could not make room enough
};

}  // namespace jitc::store
