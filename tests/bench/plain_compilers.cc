#include "tests/bench/plain_compilers.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/files.h"
#include "tests/bench/measure.h"

extern char** environ;

namespace jitc::bench {
namespace {

// A shell that becomes the command when it is told to: until then it can be put into a group, so that nothing which the
// command starts is outside.
struct Held {
  pid_t pid;
  common::Fd go;
};

Held spawn(std::vector<std::string> words) {
  words.insert(words.begin(), {"/bin/sh", "-c", "read go && exec \"$@\"", "sh"});
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) give_up("no pipe can be made");
  const common::Fd wait(ends[0]);
  common::Fd go(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, wait.get(), STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) give_up(words[0] + " cannot be started");
  return {pid, std::move(go)};
}

void let_go(const Held& held) {
  if (write(held.go.get(), "\n", 1) != 1) give_up("a held command is gone");
}

}  // namespace

PlainRun run_plain(const std::vector<std::vector<std::string>>& commands, std::size_t parallel,
                   worker::ControlGroup* group) {
  PlainRun result;
  std::size_t running = 0;
  const auto reap = [&] {
    int status = 0;
    while (waitpid(-1, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) ++result.failed;
    --running;
  };
  result.seconds = 1e-3 * milliseconds([&] {
                     for (const auto& command : commands) {
                       if (running == parallel) reap();
                       const Held held = spawn(command);
                       ++running;
                       if (group) {
                         if (auto taken = group->take_in(held.pid); !taken) give_up(common::to_line(taken.error()));
                       }
                       let_go(held);
                     }
                     while (running > 0) reap();
                   });
  return result;
}

}  // namespace jitc::bench
