#include "client/loader/module.h"

#include <dlfcn.h>
#include <link.h>

#include <cfenv>
#include <utility>

#include "client/loader/stage.h"

namespace jitc::loader {
namespace {

using common::ErrorKind;
using common::Result;

// Restores the calling thread's floating-point environment (on x86: x87 control word and MXCSR). A module linked with
// -ffast-math has a constructor that switches denormals off for the thread that loads it.
class KeepFloatEnvironment {
 public:
  KeepFloatEnvironment() { std::fegetenv(&saved_); }
  ~KeepFloatEnvironment() { std::fesetenv(&saved_); }
  KeepFloatEnvironment(const KeepFloatEnvironment&) = delete;
  KeepFloatEnvironment& operator=(const KeepFloatEnvironment&) = delete;

 private:
  std::fenv_t saved_;
};

std::string linker_words() {
  const char* words = dlerror();
  return words ? words : "no reason given";
}

Result<common::ArtifactView> verify(std::string_view bytes, const common::Digest* key, common::IsaMask host_isa) {
  Result<common::ArtifactView> view = common::verify_artifact(bytes);
  if (!view) return view;
  if (key && view->key != *key)
    return common::fail(ErrorKind::kCorrupt, "the artifact is of another key", view->key.hex());
  if (view->isa_needed & common::kNotAModule)
    return common::fail(ErrorKind::kRefused, "this is what a compiler's command left, not a module", view->key.hex());
  if (view->isa_needed & ~host_isa)
    return common::fail(
        ErrorKind::kRefused,
        "the code needs " + common::isa_text(view->isa_needed) + ", this CPU has " + common::isa_text(host_isa),
        view->key.hex(), "compile for the level that all CPUs have (JITC_ISA=common)");
  return view;
}

Result<StagedFile> place(std::string_view bytes, const common::Digest& key, const std::string& stage_dir) {
  if (!stage_dir.empty()) return stage(stage_dir, key, bytes);
  Result<common::Fd> file = common::sealed_memfd("jitc-" + key.hex().substr(0, 16), bytes, true);
  if (!file) {
    common::Error error = std::move(file.error());
    error.kind = ErrorKind::kNotLoaded;
    if (error.remedy.empty()) error.remedy = "set JITC_STAGE_DIR to load from files";
    return std::unexpected(std::move(error));
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file->get());
  return StagedFile{std::move(*file), path};
}

}  // namespace

Result<std::shared_ptr<Module>> Module::load(std::string_view bytes, const common::Digest* key,
                                             const LoadOptions& options) {
  const Result<common::ArtifactView> view = verify(bytes, key, options.host_isa);
  if (!view) return std::unexpected(view.error());
  Result<StagedFile> placed = place(bytes, view->key, options.stage_dir);
  if (!placed) return std::unexpected(std::move(placed.error()));

  // Made before the linker opens the file: nothing may fail between that and the duty to close the handle first. With
  // only the file closed its number would come back, and name the old module.
  std::shared_ptr<Module> module(new Module(std::move(placed->file), std::move(placed->path), *view));
  {
    const KeepFloatEnvironment keep;
    module->handle_ = dlopen(module->path_.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!module->handle_)
    return common::fail(ErrorKind::kNotLoaded, "the dynamic linker refused the module: " + linker_words(),
                        view->key.hex(), "undefined symbols must come from the C library or libm");
  return module;
}

Module::Module(common::Fd file, std::string path, const common::ArtifactView& view)
    : file_(std::move(file)),
      path_(std::move(path)),
      key_(view.key),
      key_text_(view.key.hex()),
      isa_needed_(view.isa_needed) {}

Module::~Module() {
  if (!handle_) return;
  const KeepFloatEnvironment keep;  // destructors of the module run on this thread
  dlclose(handle_);
  // The linker may keep a module for ever (unique symbols). Its path then must not come back with another file behind
  // it: the descriptor stays open too, or the next module on that number would be this one.
  if (void* still = dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) {
    dlclose(still);
    static_cast<void>(file_.release());
  }
}

Result<std::string> Module::bytes() const { return common::read_all(file_.get(), path_); }

Result<void*> Module::symbol(const std::string& name) const {
  if (void* address = find(name.c_str())) return address;
  return common::fail(ErrorKind::kUsage, "the module defines no such function or variable", name,
                      "check its spelling, and that it is not static");
}

void* Module::find(const char* name) const noexcept {
  dlerror();
  void* address = dlsym(handle_, name);
  if (!address) return nullptr;
  // dlsym also searches the libraries that the module needs: "sin" would be libm's.
  link_map* own = nullptr;
  Dl_info info = {};
  void* base = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&own)) != 0 ||
      !dladdr1(address, &info, &base, RTLD_DL_LINKMAP) || base != own)
    return nullptr;
  return address;
}

}  // namespace jitc::loader
