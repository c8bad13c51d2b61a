#include "tests/support/worker_client.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <stdexcept>
#include <utility>

#include "daemon/worker/channel.h"
#include "daemon/worker/process_tree.h"

namespace jitc::testing {
namespace {

constexpr int kPatienceMilliseconds = 10'000;

template <class T>
T value_of(common::Result<T> result) {
  if (!result) throw std::runtime_error(common::to_line(result.error()));
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

}  // namespace

std::string Answer::bytes() const { return elf ? value_of(common::read_all(elf.get(), "module")) : std::string(); }

WorkerClient::WorkerClient(const Setup& setup)
    : temporary_directory_(setup.temporary_directory), owns_directory_(setup.temporary_directory.empty()) {
  if (owns_directory_) {
    temporary_directory_ = (std::filesystem::temp_directory_path() / "jitc-worker-test-XXXXXX").string();
    if (mkdtemp(temporary_directory_.data()) == nullptr) throw std::runtime_error("no temporary directory");
  }
  auto [ours, theirs] = value_of(worker::make_channel());
  std::string program = JITC_BIN_DIR "/jitc-worker";
  std::vector<std::string> words = {program, "--fd", "3"};
  words.insert(words.end(), setup.options.begin(), setup.options.end());
  std::string place = "TMPDIR=" + temporary_directory_;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment = {place.data()};
  for (char** entry = environ; *entry != nullptr; ++entry) environment.push_back(*entry);
  environment.push_back(nullptr);
  pid_ = fork();
  if (pid_ == 0) {
    for (const auto& [resource, value] : setup.limits) {
      const rlimit limit{value, value};
      setrlimit(static_cast<__rlimit_resource>(resource), &limit);
    }
    // The number may be the same already: then dup2 would leave it close-on-exec.
    if (theirs.get() == 3) fcntl(3, F_SETFD, 0);
    dup2(theirs.get(), 3);
    execve(program.c_str(), arguments.data(), environment.data());
    _exit(EXIT_FAILURE);
  }
  if (pid_ < 0) throw std::runtime_error("cannot start " + program);
  channel_ = std::move(ours);
  theirs.reset();
  ready_ = next().ready();
}

WorkerClient::~WorkerClient() {
  channel_.reset();
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  if (owns_directory_) std::filesystem::remove_all(temporary_directory_, ignored);
}

v1::WorkerCommand::Start WorkerClient::request(std::vector<std::string> extra_flags) {
  v1::WorkerCommand::Start start;
  for (const char* flag : {"-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"}) {
    start.add_flags(flag);
  }
  for (std::string& flag : extra_flags) start.add_flags(std::move(flag));
  return start;
}

void WorkerClient::send(const v1::WorkerCommand& command, const std::vector<int>& descriptors) {
  value_of(worker::send_message(channel_.get(), command, descriptors));
}

std::uint64_t WorkerClient::start(std::string_view source, v1::WorkerCommand::Start start, const v1::Headers* headers) {
  start.set_job(++jobs_);
  start.set_has_headers(headers != nullptr);
  const common::Fd text = value_of(common::sealed_memfd("source", source, false));
  std::vector<int> descriptors = {text.get()};
  common::Fd more;
  if (headers != nullptr) {
    more = value_of(common::sealed_memfd("headers", headers->SerializeAsString(), false));
    descriptors.push_back(more.get());
  }
  v1::WorkerCommand command;
  *command.mutable_start() = std::move(start);
  send(command, descriptors);
  return jobs_;
}

Answer WorkerClient::compile(std::string_view source, const v1::WorkerCommand::Start& request,
                             const v1::Headers* headers) {
  return wait_finished(start(source, request, headers));
}

std::uint64_t WorkerClient::check(const common::Fd& module, const v1::Canary& canary, std::uint32_t cpu_seconds) {
  const common::Fd values = value_of(common::sealed_memfd("canary", canary.SerializeAsString(), false));
  v1::WorkerCommand command;
  auto& start = *command.mutable_start();
  start.set_job(++jobs_);
  start.set_check(true);
  start.set_cpu_seconds(cpu_seconds);
  send(command, {module.get(), values.get()});
  return jobs_;
}

void WorkerClient::cancel(std::uint64_t job) {
  v1::WorkerCommand command;
  command.mutable_cancel()->set_job(job);
  send(command);
}

void WorkerClient::set_spares(std::uint32_t count) {
  v1::WorkerCommand command;
  command.mutable_set_spares()->set_count(count);
  send(command);
}

void WorkerClient::leave_descriptors(std::size_t count) {
  std::set<std::size_t> open;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid_) + "/fd")) {
    open.insert(std::stoul(entry.path().filename()));
  }
  rlimit limit{};
  for (std::size_t free = 0; free < count; ++limit.rlim_cur) free += open.contains(limit.rlim_cur) ? 0 : 1;
  limit.rlim_max = limit.rlim_cur;
  if (prlimit(pid_, RLIMIT_NOFILE, &limit, nullptr) != 0) throw std::runtime_error("no limit of open files");
}

v1::WorkerReport WorkerClient::next(common::Fd* descriptor) {
  auto datagram = value_of(worker::receive_datagram(channel_.get()));
  v1::WorkerReport report;
  if (datagram.state != worker::Datagram::State::kMessage || !report.ParseFromString(datagram.bytes)) {
    throw std::runtime_error("the worker is gone");
  }
  common::Fd first = datagram.descriptors.empty() ? common::Fd() : std::move(datagram.descriptors.front());
  if (descriptor != nullptr) {
    *descriptor = std::move(first);
  } else if (report.has_finished()) {
    kept_.push_back({report.finished(), std::move(first)});
  }
  return report;
}

pid_t WorkerClient::wait_started(std::uint64_t job) {
  for (;;) {
    const v1::WorkerReport report = next();
    if (report.has_started() && report.started().job() == job) return static_cast<pid_t>(report.started().pid());
  }
}

bool WorkerClient::wait_alone() const {
  for (const pid_t pid : worker::descendants(pid_)) {
    const common::Fd handle(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    pollfd ended{handle.get(), POLLIN, 0};
    if (handle) poll(&ended, 1, kPatienceMilliseconds);
  }
  return worker::descendants(pid_).empty();
}

Answer WorkerClient::wait_finished(std::uint64_t job) {
  const auto is_wanted = [job](const Answer& answer) { return answer.finished.job() == job; };
  for (;;) {
    if (const auto found = std::ranges::find_if(kept_, is_wanted); found != kept_.end()) {
      Answer answer = std::move(*found);
      kept_.erase(found);
      return answer;
    }
    next();
  }
}

}  // namespace jitc::testing
