// The only files that the embedded compiler sees: the source and the headers of the request, the builtin headers, and
// real files under the include roots. Nothing else of the machine exists for it, so nothing else can enter a result.
#pragma once

#include <llvm/Support/VirtualFileSystem.h>

#include <span>
#include <string>
#include <string_view>

#include "daemon/worker/job.h"

namespace jitc::worker {

using FileSystem = llvm::IntrusiveRefCntPtr<llvm::vfs::FileSystem>;

inline constexpr const char* kSourceDirectory = "/jitc/source";
inline constexpr const char* kBuiltinDirectory = "/jitc/builtin";

// kRefused for a header whose name leaves the request's own directory.
common::Result<void> check_header_names(const v1::Headers& headers);

// Source and headers must outlive the view.
FileSystem make_memory_view(std::string_view source, const v1::Headers& headers);
// The same with the regular files and directories under `roots`; a path or a symlink that leads out of them does not
// exist.
FileSystem with_include_roots(FileSystem memory, std::span<const std::string> roots);

}  // namespace jitc::worker
