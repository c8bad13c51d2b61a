// A loaded artifact: verified bytes, sealed in memory of this process, mapped by the dynamic linker from there.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "common/artifact.h"
#include "common/digest.h"
#include "common/error.h"
#include "common/files.h"
#include "common/isa.h"

namespace jitc::loader {

struct LoadOptions {
  common::IsaMask host_isa = 0;  // what this CPU may be given
  // Empty: a sealed memory file. Else a directory of the user's own, where the artifact becomes a file with a stable
  // name (<key>.so) that debuggers and profilers find again.
  std::string stage_dir;
};

// Verifies that `bytes` is an artifact (kCorrupt), of `key` if one is given (kCorrupt), for this CPU (kRefused), and
// loads it (kNotLoaded with the linker's words). The floating-point environment of the calling thread is the same
// afterwards, whatever the module's constructors did.
class Module {
 public:
  static common::Result<std::shared_ptr<Module>> load(std::string_view bytes, const common::Digest* key,
                                                      const LoadOptions& options);
  // Unloads the code and then closes the file.
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const common::Digest& key() const { return key_; }
  const std::string& key_text() const { return key_text_; }  // in hexadecimal
  common::IsaMask isa_needed() const { return isa_needed_; }
  const std::string& path() const { return path_; }  // of this process alone where it is a memory file
  // The whole artifact file again, from the memory file.
  common::Result<std::string> bytes() const;
  // The address of what the module itself defines under this name; what its libraries define is not found (kUsage).
  common::Result<void*> symbol(const std::string& name) const;
  // The same without a reason; nullptr: none.
  void* find(const char* name) const noexcept;

 private:
  Module(common::Fd file, std::string path, const common::ArtifactView& view);

  common::Fd file_;   // open until the linker has let go of the file: a reused number would name the old module
  std::string path_;  // as the linker knows it
  void* handle_ = nullptr;
  common::Digest key_;
  std::string key_text_;
  common::IsaMask isa_needed_;
};

}  // namespace jitc::loader
