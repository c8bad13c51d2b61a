// The rules of the shim (fault_shim.cc says how they are written): which of them applies to a call.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>

namespace jitc::faults {

enum Operation : unsigned {
  kOpen,
  kStat,
  kRead,
  kWrite,
  kMap,
  kClose,
  kFsync,
  kLink,
  kRename,
  kUnlink,
  kMkdir,
  kChmod,
  kTouch,
  kList
};

enum class Effect { kFail, kShort, kHold, kWatch };

// What is to happen to a call.
struct Fault {
  Effect effect = Effect::kWatch;
  int error = 0;          // kFail
  std::size_t bytes = 0;  // kShort: at most so many
  std::string fifo;       // kHold: wait_on() it
  bool after = false;     // kFail: make the call first
};

// Descriptor and name as the *at() functions take them; an empty name is the descriptor itself.
struct Place {
  int descriptor;
  const char* name;
};

// Tells the log of it. Calls file operations itself, to which no rule may apply.
std::optional<Fault> fault_of(Operation operation, std::initializer_list<Place> places);

// Until a writer has come and gone.
void wait_on(const std::string& fifo);

}  // namespace jitc::faults
