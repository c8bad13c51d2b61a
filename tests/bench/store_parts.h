// A large store for measurements, and daemons that serve it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "common/artifact.h"
#include "common/digest.h"
#include "daemon/store/store.h"
#include "tests/bench/measure.h"

namespace jitc::bench {

// An artifact as the daemon made it, and as many of the same code under other keys as are wanted.
class Sample {
 public:
  // Reads the one in this file.
  explicit Sample(const std::string& path);
  static common::Digest key(std::size_t number) { return common::sha256("artifact " + std::to_string(number)); }
  const std::string& elf() const { return elf_; }
  std::string tail(std::size_t number) const;
  std::size_t size() const { return elf_.size() + tail(0).size(); }

 private:
  std::string elf_;
  common::Manifest manifest_;
  common::IsaMask isa_ = 0;
};

std::unique_ptr<store::Store> open_store(const std::string& directory);
// The time of each publish, in milliseconds. They are of all sizes of store from `begin` to `end`.
std::vector<double> publish(store::Store& store, const Sample& sample, std::size_t begin, std::size_t end, bool sync);
// As if number 0 was used two hours ago, and each further one a second before.
void date(const std::string& store, std::size_t end);

// A daemon in directories of its own.
class Service {
 public:
  Service(const Places& places, const std::string& name, std::string store);
  ~Service() { stop(); }
  Service(const Service&) = delete;
  // Returns when it is ready. `most`: the limit of entries, 0: the default.
  void start(std::size_t most = 0);
  void stop();
  // Until what it does beside its start is done: the store must be there already.
  void settle();
  std::uint64_t counter(const std::string& name);
  double peak_mib() const;  // of its memory since its start
  const std::string& runtime_dir() const { return runtime_dir_; }
  const std::string& store() const { return store_; }

 private:
  void set_environment() const;
  std::string jitc_, runtime_dir_, store_, temp_;
  bool runs_ = false;
};

}  // namespace jitc::bench
