// The embedded lld: one object file in memory to one shared object in a sealed memory file.
#pragma once

#include <string_view>

#include "common/error.h"
#include "common/files.h"

namespace jitc::worker {

// Finds the running system's libm, libc, libgcc_s and dynamic linker, which modules are linked against: compute nodes
// have no development packages. Once per process, before the first link.
void find_system_libraries();

// kInvalidSource names the symbols that nothing provides; kOutOfMemory when the linker says so; kInternal for
// everything else. The linker's text is in `log`.
common::Result<common::Fd> link_shared(std::string_view object);

}  // namespace jitc::worker
