#include "client/cli/cc_inputs.h"

#include <elf.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <set>
#include <string_view>
#include <utility>

#include "client/cli/cc_process.h"
#include "client/cli/cc_text.h"
#include "common/files.h"

namespace jitc::cli {
namespace {

namespace fs = std::filesystem;
using common::Digest;
using common::Hasher;

// What compilers and linkers read of the environment, beside where they look for their programs (which is in their
// identity) and for headers (which is in the text).
constexpr auto kVariables = std::to_array<std::string_view>(
    {"LANG=", "LANGUAGE=", "LC_", "GCC_COLORS=", "COLUMNS=", "SOURCE_DATE_EPOCH=", "GCC_EXTRA_DIAGNOSTIC_OUTPUT=",
     "COLLECT_", "LD_RUN_PATH=", "LDEMULATION=", "GNUTARGET=", "LOCPATH=", "GCC_URLS=", "TERM_URLS="});

constexpr int kTries = 3;
constexpr std::size_t kMostScripts = 100;

// By the clock that file systems take their times from.
timespec file_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return now;
}
bool is_before(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

// A path as the system has it: the one in the caller's directory.
class Files {
 public:
  Files(std::string directory, const timespec& begun) : directory_(std::move(directory)), begun_(begun) {}

  std::string absolute(const std::string& name) const { return name.starts_with('/') ? name : directory_ + "/" + name; }
  // The contents, noted as an input; nothing when it cannot be read, or may have been changed since the look began.
  std::optional<std::string> read(const std::string& name) {
    const std::string path = absolute(name);
    struct stat status{};
    const common::Fd file = common::open_regular(fs::path(path).string(), status);
    if (!file) return through_link(path);
    return note(path, file, status);
  }
  // Is it there? Noted either way.
  bool is_absent(const std::string& name) {
    const std::string path = absolute(name);
    struct stat status{};
    if (stat(path.c_str(), &status) == 0 || errno != ENOENT) return false;
    inputs_.push_back({path, common::file_state(path)});
    return true;
  }
  std::vector<common::CommandInput> take() { return std::move(inputs_); }
  bool too_new() const { return too_new_; }

 private:
  std::optional<std::string> through_link(const std::string& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error) return std::nullopt;
    struct stat status{};
    const common::Fd file = common::open_regular(real.string(), status);
    return file ? note(path, file, status) : std::nullopt;
  }
  std::optional<std::string> note(const std::string& path, const common::Fd& file, const struct stat& status) {
    if (!is_before(status.st_ctim, begun_) || !is_before(status.st_mtim, begun_)) {
      too_new_ = true;
      return std::nullopt;
    }
    auto text = common::read_all(file.get(), path);
    if (!text) return std::nullopt;
    inputs_.push_back({path, common::file_state(status)});  // as it was before it was read
    return std::move(*text);
  }

  std::string directory_;
  timespec begun_;
  std::vector<common::CommandInput> inputs_;
  bool too_new_ = false;
};

void add_list(Hasher& hasher, std::string_view name, const std::vector<std::string>& list) {
  hasher.list(name, list.size());
  for (const auto& one : list) hasher.text("word", one);
}

std::vector<std::string> variables_of(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  for (const auto& entry : environment)
    if (std::ranges::any_of(kVariables, [&](std::string_view name) { return entry.starts_with(name); }))
      kept.push_back(entry);
  std::ranges::sort(kept);
  return kept;
}

// ---- compiles ------------------------------------------------------------------------------------------------------

struct Part {
  Digest digest;
  std::string text;  // that is compiled
  std::string dependencies;
};

// Every file that went into the text has its contents in the digest too: messages show lines as they are written, and
// comments decide about warnings.
bool add_files(Hasher& hasher, const CcText& text, Files& files) {
  hasher.list("files", text.files.size());
  for (const auto& name : text.files) {
    const auto content = files.read(name);
    if (!content && (files.too_new() || !files.is_absent(name))) return false;
    hasher.text("name", name).digest("content", content ? common::sha256(*content) : Digest{});
    // A precompiled one would be read in the header's place.
    if (!files.is_absent(name + ".gch")) return false;
  }
  return true;
}

std::optional<Part> compile_part(const CcCompiler& compiler, const CcPlan& plan, const CcOptions& options,
                                 Files& files) {
  std::vector<std::string> arguments = plan.preprocess;
  arguments.insert(arguments.end(), {"-E", "-fpch-preprocess"});  // which says when a precompiled header is read
  if (plan.dependencies) {
    arguments.insert(arguments.end(), plan.dependencies->options.begin(), plan.dependencies->options.end());
    arguments.insert(arguments.end(), {"-MF", kDependencyFile});
  }
  auto heard = hear_compiler(compiler, arguments);
  if (!heard || heard->exit_code != 0) return std::nullopt;
  const CcText text = read_preprocessed(heard->out);
  if (text.reads_more || text.files.empty()) return std::nullopt;
  Hasher hasher("jitc cc compile 1");
  hasher.text("text", text.keyed).text("preprocessor says", heard->err);
  if (!add_files(hasher, text, files)) return std::nullopt;
  add_list(hasher, "words", plan.keyed);
  const std::string& directory = text.directory.empty() ? options.directory : text.directory;
  hasher.text("directory", plan.debug && !options.relaxed_debug ? directory : std::string());
  return Part{hasher.finish(), std::move(heard->out), std::move(heard->dependencies)};
}

// ---- links ---------------------------------------------------------------------------------------------------------

bool is_shared_object(std::string_view content) {
  Elf64_Ehdr header{};
  if (!content.starts_with(ELFMAG) || content.size() < sizeof header) return false;
  std::memcpy(&header, content.data(), sizeof header);
  return header.e_type == ET_DYN;
}

class LinkDigest {
 public:
  LinkDigest(const CcLink& link, Files& files, bool compiles) : link_(link), files_(files), compiles_(compiles) {}

  std::optional<Digest> make() {
    hasher_.list("items", link_.items.size());
    for (const auto& item : link_.items) {
      switch (item.kind) {
        case CcLink::Item::Kind::kText:
          hasher_.text("word", item.text);
          break;
        case CcLink::Item::Kind::kFile:
          if (!add_file(item.text)) return std::nullopt;
          break;
        case CcLink::Item::Kind::kLibrary:
          if (!add_library(item.text)) return std::nullopt;
          break;
      }
    }
    if (compiles_) return std::nullopt;  // its object file did not appear
    return hasher_.finish();
  }

 private:
  bool add_file(const std::string& path) {
    // What is compiled on the way goes through a file that is not there yet.
    if (compiles_ && path.starts_with('/') && path.ends_with(".o") && files_.is_absent(path)) {
      compiles_ = false;
      hasher_.text("word", "the object file");
      return true;
    }
    const auto content = files_.read(path);
    return content && add(path, *content);
  }

  // A shared library without a name of its own is recorded by its path, as it is spelled; one of -l by its file's name.
  bool add(const std::string& path, const std::string& content, bool is_searched = false) {
    const bool by_name = is_searched || !is_shared_object(content);
    hasher_.text("name", by_name ? path.substr(path.rfind('/') + 1) : path).digest("content", common::sha256(content));
    // Thin archives name files; link-time optimisation writes ones that no two links have in common.
    if (content.starts_with("!<thin>") || content.find(".gnu.lto_") != content.npos) return false;
    if (content.starts_with("\177ELF") || content.starts_with("!<arch>")) return true;
    const auto named = files_of_script(content);
    if (!named || ++scripts_ > kMostScripts) return false;
    hasher_.list("script", named->size());
    return std::ranges::all_of(*named, [this, &path](const std::string& word) {
      if (word.starts_with("-l")) return add_library(word.substr(2));
      return word.starts_with('/') ? add_file(word) : add_named(path.substr(0, path.rfind('/')), word);
    });
  }

  // A script's relative name. Linkers differ in whether they look beside the script first: it must not matter.
  bool add_named(const std::string& script_directory, const std::string& name) {
    if (!files_.is_absent(name)) return false;
    const auto beside = first_in({script_directory}, name), found = first_in(link_.directories, name);
    if (files_.too_new() || (!beside && !found)) return false;
    if (beside && found && beside->content != found->content) return false;
    const auto& file = beside ? *beside : *found;
    return add(file.path, file.content);
  }

  struct Found {
    std::string path, content;
  };
  std::optional<Found> first_in(const std::vector<std::string>& directories, const std::string& name) {
    for (const auto& directory : directories) {
      const std::string path = directory + "/" + name;
      if (auto content = files_.read(path)) return Found{path, std::move(*content)};
      if (!files_.is_absent(path)) return std::nullopt;
    }
    return std::nullopt;
  }

  bool add_library(const std::string& name) {
    const bool exact = name.starts_with(':');
    for (const auto& directory : link_.directories) {
      for (const char* suffix : {".so", ".a"}) {
        const std::string path = directory + "/" + (exact ? name.substr(1) : "lib" + name + suffix);
        if (const auto content = files_.read(path)) return add(path, *content, /*is_searched=*/true);
        if (files_.too_new() || !files_.is_absent(path)) return false;
      }
    }
    return false;  // the linker may know further directories
  }

  Hasher hasher_{"jitc cc link 1"};
  const CcLink& link_;
  Files& files_;
  bool compiles_;
  std::size_t scripts_ = 0;
};

std::optional<Digest> link_part(const CcCompiler& compiler, const CcPlan& plan, Files& files) {
  std::vector<std::string> arguments = plan.command;
  arguments.insert(arguments.end(), {"-o", plan.output, "-###"});
  const auto heard = hear_compiler(compiler, arguments);
  if (!heard || heard->exit_code != 0) return std::nullopt;
  const auto words = link_command_in(heard->err);
  const auto link = words ? read_link(*words) : std::nullopt;
  if (!link) return std::nullopt;
  return LinkDigest(*link, files, plan.kind == CcPlan::Kind::kCompileAndLink).make();
}

// Compilers refuse to write over what they read, or destroy it: that is theirs to do.
bool is_one_of_these(const std::string& path, const std::vector<common::CommandInput>& inputs) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) return false;
  return std::ranges::any_of(inputs, [seen = common::file_state(status)](const auto& one) { return one.seen == seen; });
}

std::optional<CcInputs> look(const CcCompiler& compiler, const CcPlan& plan, const CcOptions& options, Files& files) {
  Hasher hasher("jitc cc 1");
  hasher.number("kind", static_cast<std::uint64_t>(plan.kind));
  add_list(hasher, "environment", variables_of(options.environment));
  CcInputs inputs;
  common::Command& command = inputs.command;
  if (plan.kind != CcPlan::Kind::kLink) {
    auto part = compile_part(compiler, plan, options, files);
    if (!part) return std::nullopt;
    hasher.digest("compile", part->digest);
    command.scan = common::scan_source(part->text);
    inputs.dependencies = std::move(part->dependencies);
  }
  if (plan.kind != CcPlan::Kind::kCompile) {
    const auto digest = link_part(compiler, plan, files);
    if (!digest) return std::nullopt;
    hasher.digest("link", *digest);
  }
  command.digest = hasher.finish();
  command.inputs = files.take();
  if (is_one_of_these(files.absolute(plan.output), command.inputs)) return std::nullopt;
  if (plan.dependencies && is_one_of_these(files.absolute(plan.dependencies->file), command.inputs))
    return std::nullopt;
  return inputs;
}

}  // namespace

std::optional<CcInputs> inputs_of(const CcCompiler& compiler, const CcPlan& plan, const CcOptions& options) {
  for (int i = 0; i < kTries; ++i) {
    Files files(options.directory, file_clock());
    auto inputs = look(compiler, plan, options, files);
    if (!inputs && files.too_new()) continue;  // written in this very moment: it is older when it is looked at again
    if (!inputs) return std::nullopt;
    common::Command& command = inputs->command;
    command.compiler = compiler.path;
    command.argv = {compiler.name};
    command.argv.insert(command.argv.end(), plan.command.begin(), plan.command.end());
    command.environment = options.environment;
    command.directory = options.directory;
    command.for_this_cpu = plan.for_this_cpu;
    // A linker's words name files that are not in the digest by their names.
    command.with_messages = plan.kind == CcPlan::Kind::kCompile;
    return inputs;
  }
  return std::nullopt;
}

}  // namespace jitc::cli
