#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <utility>

namespace jitc::testing {
namespace {

using Clock = std::chrono::steady_clock;

std::pair<common::Fd, common::Fd> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
  return {common::Fd(ends[0]), common::Fd(ends[1])};
}

std::vector<std::string> merged(const Environment& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) result.push_back(text);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (auto& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

int milliseconds_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return left < 0 ? 0 : static_cast<int>(left);
}

// False at the end of the file.
bool read_into(common::Fd& fd, std::string& text) {
  std::array<char, 65536> buffer;
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got > 0) text.append(buffer.data(), static_cast<std::size_t>(got));
  if (got == 0) fd.reset();
  return got > 0;
}

}  // namespace

Process::Process(const std::vector<std::string>& argv, const Environment& environment, const std::string& input)
    : pending_input_(input) {
  ::signal(SIGPIPE, SIG_IGN);  // a program may end without reading its input
  auto [in_read, in_write] = make_pipe();
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in_read.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_write.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, err_write.get(), 2);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  auto arguments = argv;
  auto variables = merged(environment);
  const int failed = ::posix_spawn(&pid_, argv[0].c_str(), &actions, &attributes, pointers(arguments).data(),
                                   pointers(variables).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    pid_ = -1;
    err_text_ = "cannot start " + argv[0];
    return;
  }
  pidfd_ = common::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  in_ = std::move(in_write);
  out_ = std::move(out_read);
  err_ = std::move(err_read);
  ::fcntl(in_.get(), F_SETFL, O_NONBLOCK);
  if (pending_input_.empty()) in_.reset();
}

Process::~Process() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Process::signal(int number) const { ::kill(pid_, number); }

// One wait for anything to read or write, or for the program's end when nothing is left to read.
bool Process::read_some(double seconds) {
  std::array<pollfd, 3> waiting = {{{in_.get(), POLLOUT, 0}, {out_.get(), POLLIN, 0}, {err_.get(), POLLIN, 0}}};
  if (::poll(waiting.data(), waiting.size(), static_cast<int>(seconds * 1000)) <= 0) return false;
  if (waiting[0].revents != 0) {
    const ssize_t written = ::write(in_.get(), pending_input_.data(), pending_input_.size());
    if (written > 0) pending_input_.erase(0, static_cast<std::size_t>(written));
    if (pending_input_.empty() || (written < 0 && errno != EAGAIN)) in_.reset();
  }
  if (waiting[1].revents != 0) read_into(out_, out_text_);
  if (waiting[2].revents != 0) read_into(err_, err_text_);
  return true;
}

bool Process::wait_for_error_text(const std::string& text, double seconds) {
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (err_text_.find(text) == std::string::npos) {
    if (!err_ || !read_some(milliseconds_until(end) / 1000.0)) return false;
  }
  return true;
}

Finished Process::wait(double seconds) {
  if (pid_ <= 0) return {127, out_text_, err_text_};
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while ((out_ || err_) && read_some(milliseconds_until(end) / 1000.0)) {
  }
  pollfd ended = {pidfd_.get(), POLLIN, 0};
  if (::poll(&ended, 1, milliseconds_until(end)) <= 0) ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(std::exchange(pid_, -1), &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out_text_, err_text_};
}

Finished run(const std::vector<std::string>& argv, const Environment& environment, const std::string& input) {
  return Process(argv, environment, input).wait();
}

}  // namespace jitc::testing
