// The store as the daemon uses it: look up, publish, mark as used, clean. Called on I/O threads; thread-safe. What
// takes long is done on threads of its own, so that no look-up waits for it: going through the whole store, and the
// disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/settings.h"
#include "daemon/schedule/features.h"
#include "daemon/service/asio.h"
#include "daemon/service/work.h"
#include "daemon/store/store.h"

namespace jitc::service {

// What the schedule adds to a compile that is done.
struct CompileFacts {
  std::uint32_t attempts = 1;
  std::uint64_t predicted_bytes = 0;
  std::vector<std::string> rungs;
  std::string degraded;   // how it was compiled otherwise than asked, and why; empty: as asked
  std::string replaces;   // why what the store had must not be had any more; empty: nothing was wrong
  bool checked = false;   // it has passed its canary
  bool outdated = false;  // a compiler or a header changed meanwhile: the key may be that of another text
};

class Artifacts {
 public:
  static common::Result<std::unique_ptr<Artifacts>> open(const common::Settings& settings,
                                                         const std::string& directory);
  explicit Artifacts(std::unique_ptr<store::Store> store) : store_(std::move(store)) {}

  // Null when the store does not have it. What does not verify is moved away by the store and counts as absent.
  std::shared_ptr<const Product> look_up(const common::Digest& key);
  // The finished artifact. When the store does not take it, or must not have it, it comes without a path and with a
  // warning, and its bytes serve as well. With no_cache it is what was compiled now: a standing entry that differs is
  // put away with a warning. Null only when the worker's object cannot be read.
  std::shared_ptr<const Product> publish(const Prepared& prepared, const WorkerFinished& compiled,
                                         const CompileFacts& facts);
  // Begins what need not keep anybody waiting: durability, and cleaning when it is time.
  void settle(const Product& product);
  // Begins the care for the store, when the daemon serves. `recall` hears, on that thread, what compiles took whose
  // artifacts were used last, the last one at the end; what dead daemons left and what is too much is removed after it.
  void begin_care(std::function<void(std::vector<schedule::Experience>)> recall);
  // Until the care has ended, which is not begun again, and what was published is durable.
  void end_care();
  // It is whole, and of this key, and wrong.
  void set_aside(const common::Digest& key) { store_->set_aside(key); }
  // A client served this one itself.
  void used(const common::Digest& key) { store_->touch(key); }

  store::Leases& leases() { return store_->leases(); }

  store::Counters counters() const { return store_->counters(); }
  // What is read, in order; the last one is written to.
  const std::vector<common::StoreLayer>& layers() const { return store_->layers(); }
  std::uint64_t publish_failures() const { return publish_failures_; }

 private:
  void keep(const common::Digest& key, const std::string& elf, const std::string& tail, bool fresh, Product& product);
  void set_aside_other(const common::Digest& key, const std::string& elf, Product& product);
  static void warn(std::string text, Product& product);
  void refused(const common::Error& error, Product& product);
  std::vector<schedule::Experience> experience() const;
  void sync(const std::string& path);
  void clean_soon();
  void clean();

  std::unique_ptr<store::Store> store_;
  std::atomic<std::uint64_t> publish_failures_{0};
  std::atomic<bool> warned_{false};    // one line in the log until it works again
  std::atomic<bool> cleaning_{false};  // or about to: one is enough
  asio::thread_pool care_{1}, syncs_{1};
};

}  // namespace jitc::service
