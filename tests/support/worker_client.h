// Drives a real jitc-worker over a socket pair, as jitcd does.
#pragma once

#include <jitc/v1/worker.pb.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.h"

namespace jitc::testing {

struct Answer {
  v1::WorkerReport::Finished finished;
  common::Fd elf;
  std::string bytes() const;  // of the module
};

class WorkerClient {
 public:
  struct Setup {
    std::vector<std::string> options;            // of the worker, beyond --fd
    std::vector<std::pair<int, rlim_t>> limits;  // RLIMIT_... of the worker, soft and hard
    std::string temporary_directory;             // empty: one of its own, removed with the client
  };
  WorkerClient() : WorkerClient(Setup{}) {}
  explicit WorkerClient(const Setup& setup);
  ~WorkerClient();  // closes the channel and waits for the worker's end
  WorkerClient(const WorkerClient&) = delete;

  // The flags that jitc uses when nothing else is asked for.
  static v1::WorkerCommand::Start request(std::vector<std::string> extra_flags = {});

  std::uint64_t start(std::string_view source, v1::WorkerCommand::Start start, const v1::Headers* headers = nullptr);
  Answer compile(std::string_view source, const v1::WorkerCommand::Start& start = request(),
                 const v1::Headers* headers = nullptr);
  // Of a module: it is called and compared. The same answers, without an object.
  std::uint64_t check(const common::Fd& module, const v1::Canary& canary, std::uint32_t cpu_seconds = 60);
  void cancel(std::uint64_t job);
  void set_spares(std::uint32_t count);

  // Lowers the worker's limit of open files until it can open `count` more, whatever it has open now.
  void leave_descriptors(std::size_t count);

  // Next report of any kind. Throws std::runtime_error when the worker is gone.
  v1::WorkerReport next(common::Fd* descriptor = nullptr);
  pid_t wait_started(std::uint64_t job);
  // Answers of other jobs that come first are kept for their own call.
  Answer wait_finished(std::uint64_t job);
  // Until a usage report satisfies the predicate.
  template <class Predicate>
  v1::WorkerReport::Usage wait_usage(Predicate predicate) {
    for (;;) {
      const v1::WorkerReport report = next();
      if (report.has_usage() && predicate(report.usage())) return report.usage();
    }
  }

  // Waits until the worker has no living descendant, not longer than 10 s for each; false: some stay.
  bool wait_alone() const;
  const v1::WorkerReport::Ready& ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  const std::string& temporary_directory() const { return temporary_directory_; }

 private:
  void send(const v1::WorkerCommand& command, const std::vector<int>& descriptors = {});

  pid_t pid_ = -1;
  common::Fd channel_;
  v1::WorkerReport::Ready ready_;
  std::uint64_t jobs_ = 0;
  std::vector<Answer> kept_;
  std::string temporary_directory_;
  bool owns_directory_ = false;
};

}  // namespace jitc::testing
