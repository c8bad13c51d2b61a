#include "daemon/service/children.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <set>

#include "common/files.h"
#include "common/processes.h"
#include "common/programs.h"

namespace jitc::service {
namespace {

using common::Fd;

constexpr std::chrono::seconds kAnswerPatience{10};

// A command is entered before anybody can see it as a child and leaves after it was reaped: who holds the lock and sees
// a child that is not here knows that it is none.
struct Commands {
  std::mutex mutex;
  std::set<pid_t> running;
  bool ended = false;
};
Commands& commands() {
  static Commands all;
  return all;
}

int spawn_command(pid_t& pid, const std::string& program, const posix_spawn_file_actions_t& actions, char** arguments,
                  char** environment) {
  const std::lock_guard lock(commands().mutex);
  if (commands().ended) return ECANCELED;
  const int error = posix_spawn(&pid, program.c_str(), &actions, nullptr, arguments, environment);
  if (error == 0) commands().running.insert(pid);
  return error;
}

// Waits for its end, then reaps it under the lock: an id in the set is never somebody else's.
void reap_command(pid_t pid) {
  siginfo_t ignored;
  while (waitid(P_PID, static_cast<id_t>(pid), &ignored, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  const std::lock_guard lock(commands().mutex);
  waitpid(pid, nullptr, WNOHANG);
  commands().running.erase(pid);
}

}  // namespace

std::string answer_of(std::vector<std::string> command) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  Fd reader(ends[0]), writer(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), 2);
  std::vector<char*> arguments = common::pointers_to(command);
  std::string path = std::string("PATH=") + (std::getenv("PATH") != nullptr ? std::getenv("PATH") : "/usr/bin:/bin");
  std::string locale = "LC_ALL=C";
  char* environment[] = {path.data(), locale.data(), nullptr};
  pid_t pid = 0;
  const int error = spawn_command(pid, command[0], actions, arguments.data(), environment);
  posix_spawn_file_actions_destroy(&actions);
  writer.reset();
  if (error != 0) return {};

  std::string text;
  const auto deadline = std::chrono::steady_clock::now() + kAnswerPatience;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()).count();
    pollfd readable{reader.get(), POLLIN, 0};
    const int count = left > 0 ? poll(&readable, 1, static_cast<int>(left)) : 0;
    if (count < 0 && errno == EINTR) continue;
    char buffer[4096];
    const ssize_t size = count > 0 ? read(reader.get(), buffer, sizeof buffer) : 0;
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  kill(pid, SIGKILL);  // nothing to end when it has ended; ours to reap in any case
  reap_command(pid);
  return text;
}

void end_commands() {
  const std::lock_guard lock(commands().mutex);
  commands().ended = true;
  for (const pid_t pid : commands().running) kill(pid, SIGKILL);
}

std::vector<pid_t> adopted_children(pid_t worker) {
  const std::lock_guard lock(commands().mutex);
  auto children = common::children_of(getpid());
  std::erase_if(children, [worker](pid_t child) { return child == worker || commands().running.contains(child); });
  return children;
}

}  // namespace jitc::service
