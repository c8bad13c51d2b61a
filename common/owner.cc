#include "common/owner.h"

#include <signal.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>

#include "common/files.h"

namespace jitc::common {
namespace {

std::string pid_namespace() {
  std::array<char, 64> text{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", text.data(), text.size());
  std::string digits;
  for (ssize_t i = 0; i < length; ++i) {
    if (text[static_cast<std::size_t>(i)] >= '0' && text[static_cast<std::size_t>(i)] <= '9') {
      digits += text[static_cast<std::size_t>(i)];
    }
  }
  return digits.empty() ? "0" : digits;
}

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// Takes the part behind the last dot off `text`.
std::optional<std::string_view> take_last(std::string_view& text) {
  const std::size_t dot = text.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view part = text.substr(dot + 1);
  text = text.substr(0, dot);
  return part;
}

}  // namespace

Owner Owner::this_process() {
  return {.host = host_name(),
          .boot = boot_id() + "-" + pid_namespace(),
          .pid = ::getpid(),
          .start = process_start_time(::getpid())};
}

std::string random_digits() {
  // Without random bits the counter still keeps the names of one process apart; the other fields do the rest.
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t bits = 0;
  if (::getrandom(&bits, sizeof bits, 0) != sizeof bits) bits = 0;
  std::array<char, 16> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), bits + counter.fetch_add(1), 16).ptr;
  return {text.data(), end};
}

std::string temp_name(const Owner& owner) {
  return owner.host + '.' + owner.boot + '.' + std::to_string(owner.pid) + '.' + std::to_string(owner.start) + '.' +
         random_digits();
}

std::optional<Owner> owner_of(std::string_view name) {
  const auto random = take_last(name), start = take_last(name), pid = take_last(name), boot = take_last(name);
  if (!random || !start || !pid || !boot || name.empty()) return std::nullopt;
  const auto start_number = number_of<std::uint64_t>(*start);
  const auto pid_number = number_of<pid_t>(*pid);
  if (!start_number || !pid_number || *pid_number <= 0) return std::nullopt;
  return Owner{.host = std::string(name), .boot = std::string(*boot), .pid = *pid_number, .start = *start_number};
}

Life life_of(const Owner& owner, const Owner& self) {
  if (owner.host != self.host) return Life::kUnknown;
  if (owner.boot != self.boot) {
    // The same boot id: another pid namespace, in which this process cannot look. Else the machine was booted since.
    const auto boot_id = [](const std::string& boot) { return boot.substr(0, boot.rfind('-')); };
    const std::string theirs = boot_id(owner.boot), ours = boot_id(self.boot);
    return theirs == ours || theirs == kUnknownBoot || ours == kUnknownBoot ? Life::kUnknown : Life::kDead;
  }
  if (const std::uint64_t start = process_start_time(owner.pid); start != 0)
    return start == owner.start ? Life::kAlive : Life::kDead;
  // Other users' processes may be hidden in /proc (hidepid), or all of it be absent.
  return ::kill(owner.pid, 0) != 0 && errno == ESRCH ? Life::kDead : Life::kUnknown;
}

}  // namespace jitc::common
