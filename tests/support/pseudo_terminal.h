// A terminal whose other end the test reads.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <regex>
#include <string>
#include <string_view>

#include "common/files.h"

namespace jitc::testing {

class PseudoTerminal {
 public:
  PseudoTerminal() {
    int master = -1, slave = -1;
    if (::openpty(&master, &slave, name_.data(), nullptr, nullptr) != 0) return;  // no /dev/pts here
    master_ = common::Fd(master);
    slave_ = common::Fd(slave);  // kept open: no end of file between two writers
    ::fcntl(master, F_SETFD, FD_CLOEXEC);
    ::fcntl(slave, F_SETFD, FD_CLOEXEC);
  }
  explicit operator bool() const { return static_cast<bool>(master_); }
  std::string name() const { return name_.data(); }
  void type(std::string_view keys) const { static_cast<void>(!::write(master_.get(), keys.data(), keys.size())); }
  // Its programs are told by SIGWINCH.
  void resize(unsigned short columns, unsigned short rows) const {
    const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ::ioctl(master_.get(), TIOCSWINSZ, &size);
  }
  // Does it echo what is typed, line by line, as a shell expects it?
  bool is_usual() const {
    termios modes{};
    return ::tcgetattr(slave_.get(), &modes) == 0 && (modes.c_lflag & ICANON) != 0 && (modes.c_lflag & ECHO) != 0;
  }
  // Waits until what was shown matches; everything that was shown.
  std::string wait_for(const std::regex& expected, std::chrono::seconds patience) {
    const auto end = std::chrono::steady_clock::now() + patience;
    std::array<char, 4096> buffer;
    while (!std::regex_search(shown_, expected)) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
      pollfd waiting = {master_.get(), POLLIN, 0};
      if (left <= 0 || ::poll(&waiting, 1, static_cast<int>(left)) <= 0) break;
      const ssize_t got = ::read(master_.get(), buffer.data(), buffer.size());
      if (got <= 0) break;
      shown_.append(buffer.data(), static_cast<std::size_t>(got));
    }
    return shown_;
  }

 private:
  std::array<char, 64> name_{};
  common::Fd master_, slave_;
  std::string shown_;
};

}  // namespace jitc::testing
