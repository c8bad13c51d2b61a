// Names of temporary files and directories say who made them, so that what a killed process left can be told from what
// a living one uses:  <host>.<boot>.<pid>.<start>.<random>
//   host    of the UTS namespace; may have dots
//   boot    boot id and pid namespace: where `pid` means something
//   pid     of the maker
//   start   of the maker, clock ticks since boot: a pid that was given again is another process
//   random  hexadecimal
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace jitc::common {

struct Owner {
  std::string host, boot;
  pid_t pid = 0;
  std::uint64_t start = 0;

  static Owner this_process();
};

std::string temp_name(const Owner& owner);
std::optional<Owner> owner_of(std::string_view name);

enum class Life { kAlive, kDead, kUnknown };
// Unknown: of another host, or of another pid namespace of this one; or a process has this number, and its start is
// hidden.
Life life_of(const Owner& owner, const Owner& self);

std::string random_digits();

}  // namespace jitc::common
