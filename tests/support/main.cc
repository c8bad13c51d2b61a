// main() of the GoogleTest programs. Their tests see the same world wherever they are started from: no settings, locale
// or home of the caller's, no descriptors but the standard ones (all three open), no signals ignored or blocked.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace {

// What programs are found by, scratch space, and the orders of sanitizers and of GoogleTest.
bool is_kept(std::string_view name) {
  return name == "PATH" || name == "TMPDIR" || name == "TERM" || name.starts_with("LD_") ||
         name.ends_with("SAN_OPTIONS") || name.starts_with("GTEST_") || name.starts_with("TEST");
}

void forget_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    names.emplace_back(text.substr(0, text.find('=')));
  }
  for (const std::string& name : names) {
    if (!is_kept(name)) unsetenv(name.c_str());
  }
  setenv("HOME", "/proc/nowhere", 1);  // nobody can write there, not even root
}

// Of the caller's descriptors, those beyond the standard ones are not passed on; this program itself may need them (a
// sanitizer's log).
void keep_standard_descriptors() {
  int fd = 0;
  while ((fd = open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
  }
  close(fd);
  close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
}

void heed_signals() {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction now{};
    if (sigaction(number, nullptr, &now) == 0 && now.sa_handler == SIG_IGN) signal(number, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace

int main(int count, char** arguments) {
  forget_environment();
  keep_standard_descriptors();
  heed_signals();
  umask(022);
  ::testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
