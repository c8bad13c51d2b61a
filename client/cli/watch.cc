#include "client/cli/watch.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "common/files.h"

namespace jitc::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Screen kUsual{.columns = 80, .rows = 24};  // of a terminal that does not tell

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

Screen size_of_terminal() {
  Screen screen = kUsual;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
    screen.columns = size.ws_col;
    screen.rows = size.ws_row;
  }
  screen.utf8 = locale_is_utf8();
  screen.colours = stdout_takes_colours();
  return screen;
}

// Changes of the terminal's size, for poll(2). Threads that start later inherit the mask: nobody else takes the signal.
class Resizes {
 public:
  Resizes() {
    sigset_t resized;
    sigemptyset(&resized);
    sigaddset(&resized, SIGWINCH);
    ::pthread_sigmask(SIG_BLOCK, &resized, nullptr);
    signals_ = common::Fd(::signalfd(-1, &resized, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int descriptor() const { return signals_.get(); }
  bool take() const {
    signalfd_siginfo taken{};
    bool any = false;
    while (::read(signals_.get(), &taken, sizeof taken) == sizeof taken) any = true;
    return any;
  }

 private:
  common::Fd signals_;
};

// A whole screen of our own; as it was before when this ends.
class FullScreen {
 public:
  FullScreen() : reads_keys_(::isatty(STDIN_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (reads_keys_) {
      termios keys = before_;
      keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
      keys.c_cc[VMIN] = 1;
      keys.c_cc[VTIME] = 0;
      keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // suspended, it would leave the shell this screen
      ::tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    put("\033[?1049h\033[?25l");
  }
  ~FullScreen() {
    put("\033[?25h\033[?1049l");
    if (reads_keys_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  }
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Line by line over what stands there: a screen that is cleared first flickers.
  static void show(std::string_view text) {
    std::string out = "\033[H";
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      out.append(text.substr(0, end)).append("\033[K");
      text.remove_prefix(std::min(end + 1, text.size()));
      if (!text.empty()) out += "\r\n";  // none behind the last: it would scroll
    }
    put(out + "\033[J");
  }

  // Until something is to be done: true when the next text is due or the size changed, false at the end.
  bool wait(Clock::time_point due, const Resizes& resizes) const {
    const Deadline no_end(0);
    const int keys = reads_keys_ ? STDIN_FILENO : resizes.descriptor();
    for (;;) {
      // Keys are looked at once at least, however late it is: a daemon that hangs must not keep q from ending this.
      const std::chrono::duration<double> left = due - Clock::now();
      const auto ready = wait_readable({resizes.descriptor(), keys}, no_end, std::max(left.count(), 0.0));
      if (!ready) return false;  // interrupted
      if (*ready > 0 && resizes.take()) return true;
      if (reads_keys_ && is_typed() && is_end()) return false;
      if (left.count() <= 0) return true;
    }
  }

 private:
  static bool is_typed() {
    pollfd keys = {STDIN_FILENO, POLLIN, 0};
    return ::poll(&keys, 1, 0) > 0;
  }
  // What was typed, or the terminal's own end.
  static bool is_end() {
    std::array<char, 64> keys{};
    const ssize_t got = ::read(STDIN_FILENO, keys.data(), keys.size());
    return got <= 0 ||
           std::string_view(keys.data(), static_cast<std::size_t>(got)).find_first_of("qQ") != std::string_view::npos;
  }

  termios before_{};
  const bool reads_keys_;
};

int watch_terminal(double interval, const std::function<common::Result<std::string>(const Screen&)>& render) {
  const Resizes resizes;  // before the first call of the daemon starts threads
  std::optional<FullScreen> full;
  for (;;) {
    const Screen screen = size_of_terminal();
    const auto text = render(screen);
    if (interrupted()) return 0;
    if (!text && !full) return report(text.error());
    if (!full) full.emplace();
    FullScreen::show(text ? *text : clipped(printable(common::to_line(text.error()), screen.utf8) + "\n", screen));
    const auto shown = Clock::now();
    const std::chrono::duration<double> between(interval);
    if (!full->wait(shown + std::chrono::duration_cast<Clock::duration>(between), resizes)) return 0;
  }
}

int watch_plainly(const Watch& options, const std::function<common::Result<std::string>(const Screen&)>& render) {
  const Deadline no_end{0};
  const std::chrono::duration<double> interval(options.interval);
  auto due = Clock::now();
  for (unsigned shown = 0; options.count == 0 || shown < options.count; ++shown) {
    // An interrupt is the usual end of a text without one.
    for (std::chrono::duration<double> left; (left = due - Clock::now()).count() > 0;)
      if (!wait_readable({}, no_end, left.count())) return 0;
    const auto text = render({.utf8 = locale_is_utf8()});
    due = Clock::now() + std::chrono::duration_cast<Clock::duration>(interval);
    if (!text) return interrupted() && options.count == 0 ? 0 : report(text.error());
    if (shown > 0 && !options.in_lines) put("\n");
    put(*text);
    if (std::ferror(stdout) != 0) return 0;  // main() says so
  }
  return 0;
}

}  // namespace

int watch(const Watch& options, const std::function<common::Result<std::string>(const Screen&)>& render) {
  watch_interrupts();
  const bool in_place = stdout_is_terminal() && options.count == 0 && !options.in_lines;
  return in_place ? watch_terminal(options.interval, render) : watch_plainly(options, render);
}

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

bool stdout_takes_colours() {
  const char* refused = std::getenv("NO_COLOR");
  return stdout_is_terminal() && (refused == nullptr || *refused == '\0');
}

bool locale_is_utf8() {
  static const bool utf8 = [] {
    const locale_t locale = ::newlocale(LC_CTYPE_MASK, "", nullptr);
    if (locale == nullptr) return false;
    const bool is = std::string_view(::nl_langinfo_l(CODESET, locale)) == "UTF-8";
    ::freelocale(locale);
    return is;
  }();
  return utf8;
}

}  // namespace jitc::cli
