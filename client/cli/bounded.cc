#include "client/cli/bounded.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>

#include "client/cli/context.h"
#include "common/error.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kStep = 's', kFinding = 'f';
constexpr double kLookAgainSeconds = 0.3;
constexpr double kInterruptSeconds = 15;   // for a look to take away what it made
constexpr std::size_t kMostBytes = 65536;  // of a message

Finding stays(const std::string& check, const std::string& found) {
  return {check, Verdict::kFail, found,
          "look at the file system or program that this check uses; JITC_TIMEOUT bounds the wait"};
}

[[noreturn]] void be_child(const std::function<void(const Teller&)>& look, int socket) {
  // It tells by the socket alone. Where no kill reaches it, who reads what this command prints must not wait for it.
  const common::Fd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::dup2(nothing.get(), stream);
  const Teller tell(socket);
  try {
    look(tell);
  } catch (const std::exception& exception) {
    tell({"doctor", Verdict::kFail, std::string("a check ended: ") + exception.what(), "report it: this is a bug"});
  }
  ::_exit(0);  // nothing of the parent's is flushed or ended
}

class Child {
 public:
  Child(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // Not waited for where a kill does not reach it: the system takes it when it can.
  ~Child() { ::waitpid(pid_, nullptr, WNOHANG); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void signal(int number) const { ::kill(pid_, number); }
  const std::string& step() const { return step_; }

  // What it has said by now. False: it has ended.
  bool read(std::vector<Finding>& findings) {
    std::array<char, kMostBytes> buffer;
    for (;;) {
      const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) return true;
      if (got <= 0) return false;
      const std::string text(buffer.data() + 1, static_cast<std::size_t>(got) - 1);
      if (buffer[0] == kStep) {
        step_ = text;
      } else {
        findings.push_back(finding_of(text));
      }
    }
  }
  // It has closed its socket: its end is near.
  void take_end(std::vector<Finding>& findings) const {
    int status = 0;
    if (::waitpid(pid_, &status, 0) == pid_ && WIFSIGNALED(status))
      findings.push_back({step_, Verdict::kFail, std::string("the check was ended: ") + ::strsignal(WTERMSIG(status)),
                          "report it, unless somebody ended it"});
  }

 private:
  const pid_t pid_;
  const int socket_;
  std::string step_ = "doctor";
};

}  // namespace

void Teller::send(char kind, const std::string& text) const {
  const std::string message = kind + text.substr(0, kMostBytes - 1);
  ::send(socket_, message.data(), message.size(), MSG_NOSIGNAL);  // nobody listens: the command has ended
}

void Teller::step(const std::string& check) const { send(kStep, check); }

void Teller::operator()(const Finding& finding) const { send(kFinding, finding_message(finding)); }

bool look_within(double seconds, const std::function<void(const Teller&)>& look, std::vector<Finding>& findings,
                 const std::function<void(const std::string&)>& waiting) {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    findings.push_back({"doctor", Verdict::kFail, "no socket can be made", "see 'ulimit -n'"});
    return true;
  }
  const common::Fd ours(pair[0]);
  common::Fd theirs(pair[1]);
  const pid_t pid = ::fork();
  if (pid == 0) be_child(look, theirs.get());
  theirs.reset();
  if (pid < 0) {
    findings.push_back({"doctor", Verdict::kFail, "no process can be made", "see 'ulimit -u', and the job's limits"});
    return true;
  }
  Child child(pid, ours.get());
  const auto end = Clock::now() + std::chrono::duration<double>(seconds);
  const Deadline no_end(0);
  for (;;) {
    const double left = std::chrono::duration<double>(end - Clock::now()).count();
    const auto ready = wait_readable({ours.get()}, no_end, std::min(std::max(left, 0.0), kLookAgainSeconds));
    if (!child.read(findings)) {
      child.take_end(findings);
      return ready.has_value();
    }
    if (!ready) {
      child.signal(SIGTERM);
      const auto last = Clock::now() + std::chrono::duration<double>(kInterruptSeconds);
      for (pollfd one = {ours.get(), POLLIN, 0}; child.read(findings);) {
        const auto rest = std::chrono::ceil<std::chrono::milliseconds>(last - Clock::now()).count();
        if (rest <= 0 || ::poll(&one, 1, static_cast<int>(rest)) == 0) break;
      }
      child.signal(SIGKILL);
      return false;
    }
    if (left <= 0) {
      child.signal(SIGKILL);
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "no answer within %.3g s", seconds);
      findings.push_back(stays(child.step(), text.data()));
      return true;
    }
    waiting(child.step());
  }
}

}  // namespace jitc::cli
