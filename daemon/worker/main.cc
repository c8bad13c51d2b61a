// jitc-worker: compiles for jitcd, which starts it with one end of a socket pair: `jitc-worker --fd 3`.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/worker/embedded_compiler.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/linker.h"
#include "daemon/worker/worker.h"

namespace {

constexpr int kExitUsage = 2;
constexpr const char* kPrepared = "JITC_WORKER_PREPARED=1";

// Starts this program once more: the stack limit counts from a program's start, the allocator reads its tunables then
// (huge pages: a cold child takes a quarter of the page faults), and nothing of the caller's environment may reach a
// compiler.
void prepare_and_restart(char** arguments) {
  if (std::getenv("JITC_WORKER_PREPARED") != nullptr) return;
  jitc::worker::raise_stack_limit();
  std::vector<std::string> entries = {kPrepared, "LC_ALL=C", "PATH=/usr/local/bin:/usr/bin:/bin",
                                      "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"};
  for (const char* name : {"TMPDIR", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) entries.push_back(std::string(name) + "=" + value);
  }
  std::vector<char*> environment;
  for (std::string& entry : entries) environment.push_back(entry.data());
  environment.push_back(nullptr);
  execve("/proc/self/exe", arguments, environment.data());
  std::fprintf(stderr, "jitc-worker: cannot start itself again: %s\n", std::strerror(errno));
  std::exit(EXIT_FAILURE);
}

struct Arguments {
  int channel = -1;  // -1: unusable
  jitc::worker::WorkerOptions options;
};

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= 0 ? std::optional(number) : std::nullopt;
}

bool is_channel(int fd) {
  int type = 0;
  socklen_t size = sizeof type;
  return fd >= 0 && getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_SEQPACKET;
}

std::optional<Arguments> parse(int count, char** words) {
  Arguments arguments;
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = words[i];
    const auto number = i + 1 < count ? number_in(words[i + 1]) : std::nullopt;
    if (!number) return std::nullopt;
    if (name == "--fd") {
      arguments.channel = *number;
    } else if (name == "--idle-seconds") {
      arguments.options.idle = std::chrono::seconds(*number);
    } else if (name == "--stall-seconds") {
      arguments.options.stall = std::chrono::seconds(*number);
    } else if (name == "--control-groups") {
      arguments.options.control_groups = *number != 0;
    } else {
      return std::nullopt;
    }
  }
  return is_channel(arguments.channel) ? std::optional(arguments) : std::nullopt;
}

}  // namespace

int main(int count, char** arguments) {
  const auto parsed = parse(count, arguments);
  if (!parsed) {
    std::fprintf(stderr,
                 "usage: jitc-worker --fd N [--idle-seconds N] [--stall-seconds N] [--control-groups 0|1]\n"
                 "--fd is a SOCK_SEQPACKET socket; jitcd starts it\n");
    return kExitUsage;
  }
  prepare_and_restart(arguments);
  prctl(PR_SET_NAME, "jitc-worker");  // "exe" after the restart
  fcntl(parsed->channel, F_SETFD, FD_CLOEXEC);
  jitc::worker::initialise_compiler();
  jitc::worker::find_system_libraries();
  jitc::worker::Worker worker{jitc::common::Fd(parsed->channel), parsed->options};
  if (const auto ended = worker.run(); !ended) {
    std::fprintf(stderr, "jitc-worker: %s\n", jitc::common::to_line(ended.error()).c_str());
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
