#include "tests/bench/plain_compilers.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "tests/bench/measure.h"

extern char** environ;

namespace jitc::bench {
namespace {

pid_t spawn(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (auto& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) give_up(words[0] + " cannot be started");
  return pid;
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
                       const pid_t pid = spawn(command);
                       ++running;
                       // The driver has read nothing yet: what it starts later is in the group from its birth.
                       if (group) {
                         if (auto taken = group->take_in(pid); !taken) give_up(common::to_line(taken.error()));
                       }
                     }
                     while (running > 0) reap();
                   });
  return result;
}

}  // namespace jitc::bench
