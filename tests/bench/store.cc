// A store of 100,000 artifacts: publishing and verifying them, hits among them, the daemon's start, and cleaning beside
// hits.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>
#include <utility>

#include "common/files.h"
#include "common/store_reader.h"
#include "tests/bench/look_up.h"
#include "tests/bench/store_parts.h"

namespace jitc::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSmall = 10;         // artifacts of a small store
constexpr std::size_t kSynced = 300;       // publishes that are made durable
constexpr std::size_t kInMemory = 10'000;  // artifacts on tmpfs
constexpr std::size_t kPlain = 10'000, kPublishBlocks = 20;
constexpr int kStarts = 11;
constexpr int kBlocks = 40, kBlock = 200;  // of look-ups, in turn

void row(const std::string& name, const std::string& text) {
  std::printf("%-52s %s\n", name.c_str(), text.c_str());
  std::fflush(stdout);
}

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[160];
  std::snprintf(line, sizeof line, format, values...);
  return line;
}

double sum(const std::vector<double>& values) {
  double all = 0;
  for (const double value : values) all += value;
  return all;
}

// ---- publishing and verifying ---------------------------------------------------------------------------------------

// What a publish cannot do without: a file written, given its name, and made durable if so wanted.
class PlainFiles {
 public:
  PlainFiles(std::string directory, std::string bytes) : directory_(std::move(directory)), bytes_(std::move(bytes)) {
    fs::create_directories(directory_);
    parent_ = common::Fd(::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~PlainFiles() { fs::remove_all(directory_); }
  PlainFiles(const PlainFiles&) = delete;
  double write(bool sync) {
    const std::string path = directory_ + "/" + std::to_string(count_++), temp = directory_ + "/tmp";
    return milliseconds([&] {
      common::Fd fd(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      bool ok = fd && ::write(fd.get(), bytes_.data(), bytes_.size()) == static_cast<ssize_t>(bytes_.size());
      if (sync) ok = ok && ::fsync(fd.get()) == 0;
      fd.reset();
      ok = ok && ::rename(temp.c_str(), path.c_str()) == 0;
      if (sync) ok = ok && ::fsync(parent_.get()) == 0;
      if (!ok) give_up("cannot write " + path);
    });
  }

 private:
  std::string directory_, bytes_;
  common::Fd parent_;
  int count_ = 0;
};

// `count` publishes, in blocks between which as many plain files are written, but kPlain at most.
std::vector<double> measure_publishes(const std::string& name, const std::string& directory, const Sample& sample,
                                      std::size_t count, bool sync) {
  const auto store = open_store(directory);
  PlainFiles files(directory + "-plain", sample.elf() + sample.tail(0));
  std::vector<double> ours, plain;
  for (std::size_t block = 0; block < kPublishBlocks; ++block) {
    const std::size_t begin = count * block / kPublishBlocks, end = count * (block + 1) / kPublishBlocks;
    for (std::size_t i = begin; i < end && i - begin < kPlain / kPublishBlocks; ++i) plain.push_back(files.write(sync));
    const auto times = publish(*store, sample, begin, end, sync);
    ours.insert(ours.end(), times.begin(), times.end());
  }
  row("publish, " + name, text("p50 %7.3f ms  p99 %7.3f ms  %6.0f /s   plain file %7.3f ms   ratio %5.2f", median(ours),
                               quantile(ours, 0.99), 1e3 * static_cast<double>(count) / sum(ours), median(plain),
                               median(ours) / median(plain)));
  return ours;
}

void measure_publishing(const Places& places, const Sample& sample, const std::string& large) {
  const std::string memory = "/dev/shm/jitc-bench-" + std::to_string(::getpid());
  if (fs::is_directory("/dev/shm")) {
    measure_publishes("tmpfs", memory, sample, std::min(kInMemory, places.artifacts), false);
    fs::remove_all(memory);
  }
  const std::string synced = places.scratch + "/synced";
  measure_publishes("and made durable", synced, sample, kSynced, true);
  fs::remove_all(synced);
  const auto times = measure_publishes("not yet durable", large, sample, places.artifacts, false);
  const auto tenth = static_cast<std::ptrdiff_t>(times.size() / 10);
  const double first = median({times.begin(), times.begin() + tenth}),
               last = median({times.end() - tenth, times.end()});
  row("  the last tenth of them beside the first", text("%.3f ms and %.3f ms   ratio %.2f", last, first, last / first));
}

void measure_verifying(const std::string& large, const Sample& sample, std::size_t count) {
  const common::StoreReader reader({{large, common::Trust::kOwn}});
  std::vector<double> seconds;
  for (int pass = 0; pass < 3; ++pass) {
    seconds.push_back(1e-3 * milliseconds([&] {
                        common::StoredArtifact artifact;
                        for (std::size_t i = 0; i < count; ++i)
                          if (reader.look_up(Sample::key(i), artifact) != common::LookupOutcome::kFound)
                            give_up("an artifact does not verify");
                      }));
  }
  const std::string bytes = sample.elf() + sample.tail(0);
  const double digests = 1e-3 * milliseconds([&] {
                           for (std::size_t i = 0; i < count; ++i) static_cast<void>(common::sha256(bytes));
                         });
  const double files = static_cast<double>(count), mib = files * static_cast<double>(bytes.size()) / (1 << 20);
  row("verify, cached pages",
      text("%.1f us each  %.0f /s  %.0f MiB/s   the digest alone %.1f us", 1e6 * median(seconds) / files,
           files / median(seconds), mib / median(seconds), 1e6 * digests / files));
}

// ---- the daemon -----------------------------------------------------------------------------------------------------

// From nothing to the first answer, about what no store has.
double start(Service& service) {
  return milliseconds([&] {
    service.start();
    if (LookUp(service.runtime_dir()).finds(common::sha256("nothing"))) give_up("a look-up found something");
  });
}

void measure_starts(Service& empty, Service& large) {
  std::vector<double> of_empty, of_large, again;
  double peak_empty = 0, peak_large = 0;
  for (int i = 0; i < kStarts; ++i) {
    of_empty.push_back(start(empty));
    peak_empty = std::max(peak_empty, empty.peak_mib());
    empty.stop();
    of_large.push_back(start(large));
    large.settle();
    peak_large = std::max(peak_large, large.peak_mib());
    large.stop();
    again.push_back(start(empty));
    empty.stop();
  }
  row("start to the first answer, empty store", text("%.1f ms, least %.1f", median(of_empty), quantile(of_empty, 0)));
  row("the same again (noise)",
      text("%.1f ms, least %.1f   ratio %.3f", median(again), quantile(again, 0), median(again) / median(of_empty)));
  row("the same, large store",
      text("%.1f ms, least %.1f   ratio %.3f, of the least %.3f", median(of_large), quantile(of_large, 0),
           median(of_large) / median(of_empty), quantile(of_large, 0) / quantile(of_empty, 0)));
  row("memory of the daemon, most", text("%.1f MiB, empty %.1f", peak_large, peak_empty));
}

class Client {
 public:
  Client(const std::string& runtime_dir, std::size_t count) : by_rpc_(runtime_dir), number_(0, count - 1) {}
  void hit() {
    const common::Digest key = Sample::key(number_(random_));
    times_.push_back(milliseconds([&] {
      if (!by_rpc_.finds(key)) give_up("a look-up found nothing");
    }));
  }
  std::vector<double> take() { return std::exchange(times_, {}); }

 private:
  LookUp by_rpc_;
  std::mt19937_64 random_{1};
  std::uniform_int_distribution<std::size_t> number_;
  std::vector<double> times_;
};

void print_hits(const std::string& name, const std::vector<double>& times, const std::vector<double>& against) {
  row(name, text("p50 %6.3f ms  p99 %6.3f ms  most %6.1f ms   ratios %5.2f  %5.2f   (%zu)", median(times),
                 quantile(times, 0.99), quantile(times, 1), median(times) / median(against),
                 quantile(times, 0.99) / quantile(against, 0.99), times.size()));
}

void measure_hits(Service& small, Service& large, std::size_t count) {
  small.start();
  large.start();
  large.settle();
  Client first(small.runtime_dir(), kSmall), again(small.runtime_dir(), kSmall), of_large(large.runtime_dir(), count);
  for (int block = 0; block < kBlocks; ++block) {
    for (Client* client : {&first, &of_large, &again})
      for (int i = 0; i < kBlock; ++i) client->hit();
  }
  const auto against = first.take();
  print_hits("hit by RPC, a store of 10", against, against);
  print_hits("the same again (noise)", again.take(), against);
  print_hits("the same, the large store", of_large.take(), against);
  small.stop();
  large.stop();
}

// ---- cleaning beside hits -------------------------------------------------------------------------------------------

void fill_up(const std::string& large, const Sample& sample, std::size_t count) {
  const auto store = open_store(large);
  for (std::size_t i = 0; i < count; ++i)
    if (!fs::exists(common::artifact_path(large, Sample::key(i)))) publish(*store, sample, i, i + 1, false);
  date(large, count);
  ::sync();  // what was written does not disturb what is measured next
}

// Cleaning goes down to nine tenths of the limit.
std::size_t limit_for(std::size_t left) { return left * 10 / 9; }

void print_cleaning(const std::string& name, double seconds, std::size_t removed) {
  row(name, text("%.2f s for %zu removals, %.0f /s", seconds, removed, static_cast<double>(removed) / seconds));
}

// Hits are of the newest tenth, which no cleaning removes.
void measure_cleaning(const Places& places, Service& large, const Sample& sample) {
  const std::size_t count = places.artifacts, half = count / 2;
  fill_up(large.store(), sample, count);
  large.start();
  large.settle();
  Client client(large.runtime_dir(), count / 10);
  for (int i = 0; i < kBlocks * kBlock; ++i) client.hit();
  const auto quiet = client.take();
  print_hits("hit by RPC, nothing else", quiet, quiet);

  ProcessCost cost;
  std::atomic<bool> ended{false};
  std::jthread command([&] {
    cost = measure_process({places.bin + "/jitc", "cache", "gc", "--store", large.store(), "--max-entries",
                            std::to_string(limit_for(half))});
    ended = true;
  });
  while (!ended) client.hit();
  command.join();
  print_cleaning("jitc cache gc", cost.seconds, count - half);
  row("  its processor time", text("%.2f s, %.0f us for each removal; memory %.1f MiB", cost.processor_seconds,
                                   1e6 * cost.processor_seconds / static_cast<double>(count - half), cost.peak_mib));
  print_hits("hit by RPC, beside it", client.take(), quiet);
  large.stop();

  fill_up(large.store(), sample, count);
  large.start(limit_for(half));
  Client beside(large.runtime_dir(), count / 10);
  std::uint64_t removed = 0;
  const double seconds = 1e-3 * milliseconds([&] {
                           while (removed == 0) {
                             for (int i = 0; i < kBlock; ++i) beside.hit();
                             removed = large.counter("evicted");
                           }
                         });
  print_cleaning("the daemon cleans at its start", seconds, removed);
  print_hits("hit by RPC, beside it", beside.take(), quiet);
  row("memory of the daemon, most", text("%.1f MiB", large.peak_mib()));
  large.stop();
}

}  // namespace

void store(const Places& places) {
  Service small(places, "small", places.scratch + "/small"), empty(places, "empty", places.scratch + "/empty"),
      large(places, "large", places.scratch + "/large");
  Places compiler = places;
  compiler.runtime_dir = small.runtime_dir();
  small.start();
  const Sample sample(compile(*open_daemon(compiler), request_of("double f(double x) { return 2 * x; }\n")));
  small.stop();
  std::printf("%zu artifacts of %zu bytes\n", places.artifacts, sample.size());
  publish(*open_store(small.store()), sample, 0, kSmall, true);
  measure_publishing(places, sample, large.store());
  fill_up(large.store(), sample, places.artifacts);
  measure_verifying(large.store(), sample, places.artifacts);
  measure_starts(empty, large);
  measure_hits(small, large, places.artifacts);
  measure_cleaning(places, large, sample);
}

}  // namespace jitc::bench
