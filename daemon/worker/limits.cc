#include "daemon/worker/limits.h"

#include <fcntl.h>
#include <llvm/Support/ErrorHandling.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "common/files.h"
#include "common/oom_score.h"
#include "daemon/worker/enforcement.h"
#include "daemon/worker/process_tree.h"

namespace jitc::worker {
namespace {

constexpr int kNice = 10;
constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kFaultDistance = 1 << 20;
// What lies above the first frame (arguments, environment), and the gap that the kernel keeps below the stack.
constexpr std::uint64_t kStackReserve = 2 << 20;

void say(std::string_view text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

// Lowers the soft limit; and the hard one as well where a program that we do not know could raise it again. True: that
// is the limit now, and not one that was lower already.
bool set_limit(__rlimit_resource resource, std::uint64_t soft) noexcept {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, soft);
  return setrlimit(resource, &limit) == 0 && limit.rlim_cur == soft;
}
void set_hard_limit(__rlimit_resource resource, std::uint64_t soft, std::uint64_t hard) noexcept {
  rlimit limit{};
  getrlimit(resource, &limit);
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, hard);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, soft);
  setrlimit(resource, &limit);
}

bool g_limits_data = false;  // RLIMIT_DATA is ours

[[noreturn]] void end_out_of_memory() {
  const bool own = is_own_limit_nearer();
  say(own ? "an allocation failed under the memory limit\n" : "an allocation failed\n");
  _exit(own ? kExitOutOfMemory : kExitRefusedMemory);
}
void on_bad_alloc(void*, const char*, bool) { end_out_of_memory(); }
void on_fatal_error(void*, const char* reason, bool) {
  say("LLVM: ");
  say(reason);
  say("\n");
  _exit(kExitFatalError);
}

std::uint64_t g_stack_end = 0;  // below it the stack is as good as used up

// A stack overflow is proven by where the stack ends, not by the fault alone. After any other fault a second one, after
// the return, ends the process as it would have without us.
void on_fault(int, siginfo_t* info, void* context) {
  const auto stack = static_cast<std::uint64_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP]);
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  const bool at_stack = address + kFaultDistance > stack && address < stack + kFaultDistance;
  if (!at_stack || stack > g_stack_end) return;
  say("the stack is used up\n");
  _exit(kExitDeepSource);
}

void install_fault_handler() {
  static std::array<char, 64 * 1024> handler_stack;
  g_stack_end = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) - stack_bytes() + kStackReserve;
  const stack_t stack{handler_stack.data(), 0, handler_stack.size()};
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
}

double seconds_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

std::uint64_t peak_of(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace

bool raise_stack_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_STACK, &limit) != 0) return false;
  const rlim_t wanted = std::min<rlim_t>(kStackBytes, limit.rlim_max);
  if (limit.rlim_cur == wanted) return false;
  limit.rlim_cur = wanted;
  return setrlimit(RLIMIT_STACK, &limit) == 0;
}

std::uint64_t stack_bytes() {
  rlimit limit{};
  return getrlimit(RLIMIT_STACK, &limit) == 0 ? std::min<std::uint64_t>(limit.rlim_cur, kStackBytes) : kStackBytes;
}

void leave_signals_to_daemon() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) std::signal(signal, SIG_IGN);
}

void become_child(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(EXIT_FAILURE);  // it died before the line above
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  leave_signals_to_daemon();
  set_hard_limit(RLIMIT_CORE, 0, 0);
  // Both may be refused; then the child is an ordinary process.
  setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + kNice);
  common::raise_oom_score(common::kCompileOomScore);
}

void limit_compile(std::uint64_t memory_bytes, std::uint32_t cpu_seconds) {
  if (memory_bytes > 0) {
    const Memory now = memory_of(getpid());
    const std::uint64_t growth = std::max(kLeastGrowth, memory_bytes > now.resident ? memory_bytes - now.resident : 0);
    g_limits_data = set_limit(RLIMIT_DATA, now.data + growth);
  }
  if (cpu_seconds > 0) {
    set_limit(RLIMIT_CPU, static_cast<std::uint64_t>(std::ceil(cpu_seconds_of_self())) + cpu_seconds);
  }
  set_limit(RLIMIT_FSIZE, kFileBytes);
}

bool is_own_limit_nearer() {
  if (!g_limits_data) return false;
  rlimit data{}, space{};
  if (getrlimit(RLIMIT_DATA, &data) != 0 || getrlimit(RLIMIT_AS, &space) != 0) return true;
  if (space.rlim_cur == RLIM_INFINITY) return true;
  const common::Fd file(open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 256> text{};
  if (!file || read(file.get(), text.data(), text.size() - 1) <= 0) return true;
  std::array<std::uint64_t, 6> pages{};  // size resident shared text lib data
  char* at = text.data();
  for (std::uint64_t& count : pages) count = std::strtoull(at, &at, 10);
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const auto left = [page](const rlimit& limit, std::uint64_t used) {
    return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, used * page);
  };
  return left(data, pages.back()) <= left(space, pages.front());
}

void install_failure_handlers() {
  std::set_new_handler(end_out_of_memory);
  llvm::install_bad_alloc_error_handler(on_bad_alloc);
  llvm::install_fatal_error_handler(on_fatal_error);
  install_fault_handler();
}

void limit_external(std::uint64_t memory_bytes, std::uint32_t cpu_seconds) noexcept {
  if (memory_bytes > 0) set_hard_limit(RLIMIT_DATA, memory_bytes, memory_bytes);
  if (cpu_seconds > 0) set_hard_limit(RLIMIT_CPU, cpu_seconds, cpu_seconds + kCpuGrace);
  set_hard_limit(RLIMIT_FSIZE, kFileBytes, kFileBytes);
}

std::optional<std::uint64_t> address_space_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

double cpu_seconds_of_self() { return seconds_of(RUSAGE_SELF); }
double cpu_seconds_of_children() { return seconds_of(RUSAGE_CHILDREN); }
std::uint64_t peak_bytes_of_self() { return peak_of(RUSAGE_SELF); }
std::uint64_t peak_bytes_of_children() { return peak_of(RUSAGE_CHILDREN); }

}  // namespace jitc::worker
