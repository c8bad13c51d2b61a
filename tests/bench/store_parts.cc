#include "tests/bench/store_parts.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "common/identity.h"
#include "common/owner.h"
#include "common/store_reader.h"

namespace jitc::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{20};

template <class Value>
Value must(common::Result<Value> result) {
  if (!result) give_up(common::to_line(result.error()));
  return std::move(*result);
}

}  // namespace

// ---- artifacts ------------------------------------------------------------------------------------------------------

Sample::Sample(const std::string& path) {
  const std::string bytes = read_text(path);
  const auto view = must(common::verify_artifact(bytes));
  elf_ = view.elf;
  manifest_ = must(common::manifest_from_json(view.manifest));
  isa_ = view.isa_needed;
}

std::string Sample::tail(std::size_t number) const {
  common::Manifest manifest = manifest_;
  manifest.key = key(number).hex();
  return common::make_tail(elf_, manifest, key(number), isa_);
}

std::unique_ptr<store::Store> open_store(const std::string& directory) {
  return must(store::Store::open({.directory = directory}));
}

std::vector<double> publish(store::Store& store, const Sample& sample, std::size_t begin, std::size_t end, bool sync) {
  std::vector<double> times;
  for (std::size_t number = begin; number < end; ++number) {
    const common::Digest key = Sample::key(number);
    const std::string tail = sample.tail(number);
    times.push_back(milliseconds([&] {
      const auto path = must(store.publish(key, sample.elf(), tail));
      if (!sync) return;
      if (auto synced = store.sync(path); !synced) give_up(common::to_line(synced.error()));
    }));
  }
  return times;
}

void date(const std::string& store, std::size_t end) {
  const std::time_t newest = std::time(nullptr) - 7200;
  for (std::size_t number = 0; number < end; ++number) {
    const std::time_t used = newest - static_cast<std::time_t>(number);
    const timespec times[] = {{used, 0}, {used, 0}};
    ::utimensat(AT_FDCWD, common::artifact_path(store, Sample::key(number)).c_str(), times, 0);
  }
}

// ---- daemons --------------------------------------------------------------------------------------------------------

Service::Service(const Places& places, const std::string& name, std::string store)
    : jitc_(places.bin + "/jitc"), runtime_dir_(places.scratch + "/run-" + name), store_(std::move(store)) {}

void Service::set_environment() const {
  ::setenv("JITC_RUNTIME_DIR", runtime_dir_.c_str(), 1);
  ::setenv("JITC_STORE", store_.c_str(), 1);
}

// What dead writers left goes first when a daemon cleans, once it has begun: see settle().
void Service::start(std::size_t most) {
  common::Owner dead = common::Owner::this_process();
  dead.start += 1;
  temp_ = store_ + "/v1/tmp/" + common::temp_name(dead);
  std::ofstream(temp_, std::ios::out).close();
  set_environment();
  if (most > 0) ::setenv("JITC_STORE_MAX_ENTRIES", std::to_string(most).c_str(), 1);
  run({jitc_, "daemon", "start"});
  ::unsetenv("JITC_STORE_MAX_ENTRIES");
  runs_ = true;
}

void Service::stop() {
  if (!std::exchange(runs_, false)) return;
  set_environment();
  run({jitc_, "daemon", "stop"});
}

void Service::settle() {
  while (fs::exists(temp_)) std::this_thread::sleep_for(kLook);
  const std::string gc = "'" + jitc_ + "' cache gc --dry-run --store '" + store_ + "' >/dev/null 2>&1";
  while (std::system(gc.c_str()) != 0) std::this_thread::sleep_for(kLook);  // another one cleans
}

std::uint64_t Service::counter(const std::string& name) {
  Places places;
  places.runtime_dir = runtime_dir_;
  const std::string text = must(open_daemon(places)->query("stats", {.seconds = 60}));
  return nlohmann::json::parse(text).at(name).get<std::uint64_t>();
}

double Service::peak_mib() const {
  const auto pid = must(common::read_identity(runtime_dir_)).pid;
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  return 0;
}

}  // namespace jitc::bench
