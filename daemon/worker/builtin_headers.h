// The headers that the worker carries, so that sources need no development package: Clang's freestanding ones and ours
// (daemon/worker/headers). Their text is put into the executable at build time.
#pragma once

#include <span>
#include <string_view>

namespace jitc::worker {

struct BuiltinHeader {
  std::string_view name;
  std::string_view text;  // followed by a NUL byte
};
std::span<const BuiltinHeader> builtin_headers();

}  // namespace jitc::worker
