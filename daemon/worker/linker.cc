#include "daemon/worker/linker.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <lld/Common/CommonLinkerContext.h>
#include <lld/Common/Driver.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/worker/elf_image.h"

LLD_HAS_DRIVER(elf)

namespace jitc::worker {
namespace {

using common::ErrorKind;
using common::Fd;
using common::Result;

// Reading a library costs lld more than the rest of a small link, so only those are named that give something. The
// result is the same: what gives nothing is not needed.
struct Library {
  std::string path;
  llvm::StringSet<> symbols;
};

std::vector<Library>& libraries() {
  static std::vector<Library> found;
  return found;
}

std::vector<const char*> libraries_for(std::string_view object) {
  std::vector<std::string_view> wanted = symbols_of_object(object).undefined;
  std::vector<const char*> paths;
  for (const Library& library : libraries()) {
    const auto given = [&library](std::string_view name) {
      return library.symbols.contains({name.data(), name.size()});
    };
    if (std::erase_if(wanted, given) > 0) paths.push_back(library.path.c_str());
  }
  return paths;
}

// Puts a descriptor in the place of standard output as long as it lives: lld writes regular files by way of a temporary
// file beside them, which a memory file does not have; what it calls "-" it writes straight.
class StandardOutput {
 public:
  explicit StandardOutput(const Fd& replacement) : saved_(fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    dup2(replacement.get(), STDOUT_FILENO);
  }
  ~StandardOutput() {
    llvm::outs().flush();
    if (saved_) dup2(saved_.get(), STDOUT_FILENO);
  }
  StandardOutput(const StandardOutput&) = delete;

 private:
  Fd saved_;
};

bool run_linker(const std::vector<const char*>& words, const Fd& output, std::string& text) {
  const StandardOutput redirected(output);
  llvm::raw_string_ostream stream(text);
  const bool linked = lld::elf::link(words, stream, stream, false, false);
  lld::CommonLinkerContext::destroy();
  return linked;
}

// The symbols of "error: undefined symbol: NAME" and "error: undefined hidden symbol: NAME" lines.
std::vector<std::string> undefined_symbols(std::string_view text) {
  constexpr std::string_view kMark = " symbol: ";
  std::vector<std::string> names;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t undefined = line.find("error: undefined");
    const std::size_t mark = line.find(kMark);
    if (undefined != std::string_view::npos && mark != std::string_view::npos) {
      names.emplace_back(line.substr(mark + kMark.size()));
    }
  }
  return names;
}

// lld's own words about a file (its output, too) that it got no memory for; other lines may hold words of the source.
bool ran_out_of_memory(std::string_view text) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const bool about_a_file =
        line.starts_with("ld.lld: error: failed to open ") || line.starts_with("ld.lld: error: cannot open ");
    if (about_a_file && line.ends_with(std::strerror(ENOMEM))) return true;
  }
  return false;
}

std::unexpected<common::Error> link_error(const std::string& text) {
  const std::vector<std::string> names = undefined_symbols(text);
  if (names.empty()) {
    const bool no_memory = ran_out_of_memory(text);
    auto error = common::fail(no_memory ? ErrorKind::kOutOfMemory : ErrorKind::kInternal,
                              no_memory ? "the linker ran out of memory" : "the linker failed", "module");
    error.error().log = text;
    return error;
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return common::fail(ErrorKind::kInvalidSource,
                      std::string("undefined symbol") + (names.size() > 1 ? "s" : "") + ": " + list +
                          " (a module may call its own functions, libm and libc)",
                      "module");
}

}  // namespace

void find_system_libraries() {
  for (const char* name : {"libm.so.6", "libc.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"}) {
    void* handle = dlopen(name, RTLD_LAZY);
    link_map* map = nullptr;
    if (handle != nullptr && dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) == 0) {
      const std::string image = common::read_file(map->l_name).value_or("");
      Library& library = libraries().emplace_back();
      library.path = map->l_name;
      for (const std::string_view symbol : symbols_of_library(image).defined) {
        library.symbols.insert({symbol.data(), symbol.size()});
      }
    }
  }
}

Result<Fd> link_shared(std::string_view object) {
  auto input = common::sealed_memfd("object", object, false);
  if (!input) return std::unexpected(input.error());
  Fd output(memfd_create("module", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!output) return common::fail_errno(ErrorKind::kInternal, errno, "cannot create a memory file", "module");
  const std::string input_path = "/proc/self/fd/" + std::to_string(input->get());
  std::vector<const char*> words = {"ld.lld",
                                    "-shared",
                                    "--threads=1",
                                    "--build-id=none",
                                    "-Bsymbolic",
                                    "--no-undefined",
                                    "--no-dependent-libraries",
                                    "--hash-style=gnu",
                                    "-z",
                                    "relro",
                                    "-z",
                                    "noexecstack",
                                    "--eh-frame-hdr",
                                    "-o",
                                    "-",
                                    input_path.c_str(),
                                    "--as-needed"};
  for (const char* library : libraries_for(object)) words.push_back(library);
  std::string text;
  if (!run_linker(words, output, text)) return link_error(text);
  if (fcntl(output.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return common::fail_errno(ErrorKind::kInternal, errno, "cannot seal a memory file", "module");
  }
  return output;
}

}  // namespace jitc::worker
