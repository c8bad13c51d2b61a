#include "daemon/worker/embedded_compiler.h"

#include <clang/Basic/Version.h>
#include <clang/CodeGen/CodeGenAction.h>
#include <clang/Driver/Compilation.h>
#include <clang/Driver/Driver.h>
#include <clang/Driver/Tool.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendActions.h>
#include <clang/Frontend/MultiplexConsumer.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Host.h>

#include <memory>
#include <string>
#include <vector>

#include "common/digest.h"
#include "common/flags.h"
#include "daemon/worker/builtin_headers.h"
#include "daemon/worker/diagnostics.h"
#include "daemon/worker/elf_image.h"
#include "daemon/worker/file_view.h"
#include "daemon/worker/inspection.h"
#include "daemon/worker/limits.h"
#include "daemon/worker/linker.h"

namespace jitc::worker {
namespace {

// Beyond what any source may nest (common/flags.h); the stack that this takes was reserved when the worker started.
constexpr const char* kBracketDepth = "-fbracket-depth=20000";

// Arguments as people would type them: `asked` says what decides the result, `forced` what must hold whatever is asked.
struct Arguments {
  std::vector<std::string> asked;
  std::vector<std::string> forced;
};

Arguments arguments_of(const v1::WorkerCommand::Start& start) {
  Arguments arguments;
  if (!start.isa_level().empty() && !names_machine(start)) arguments.asked.push_back("-march=" + start.isa_level());
  arguments.asked.insert(arguments.asked.end(), start.flags().begin(), start.flags().end());
  arguments.forced = {"-fPIC",
                      kBracketDepth,
                      "-fno-crash-diagnostics",
                      "-Qunused-arguments",
                      "-fdebug-compilation-dir=.",
                      "-nostdinc",
                      "-I.",
                      std::string("-isystem") + kBuiltinDirectory};
  for (const std::string& root : start.include_roots()) arguments.forced.push_back("-idirafter" + root);
  return arguments;
}

std::vector<std::string> command_of(const v1::WorkerCommand::Start& start, const char* language, bool warnings) {
  std::vector<std::string> words = {"clang", "--no-default-config", "-c", language, kSourceName, "-osource.o"};
  const Arguments arguments = arguments_of(start);
  words.insert(words.end(), arguments.asked.begin(), arguments.asked.end());
  words.insert(words.end(), arguments.forced.begin(), arguments.forced.end());
  if (!warnings) words.emplace_back("-w");
  return words;
}

// One compiler for one source.
class Compile {
 public:
  enum class Text { kSource, kPreprocessed };
  Compile(const Job& job, Text text)
      : job_(job),
        text_(text),
        memory_(make_memory_view(job.source, job.headers)),
        files_(with_include_roots(
            memory_, std::vector<std::string>(job.start.include_roots().begin(), job.start.include_roots().end()))),
        collector_(text == Text::kPreprocessed) {}

  // False: `collector` holds the reason.
  bool prepare(bool last, bool warnings) {
    if (!make_invocation(warnings)) return false;
    auto& invocation = compiler_.getInvocation();
    invocation.getFrontendOpts().DisableFree = last;
    invocation.getCodeGenOpts().DisableFree = last;
    invocation.getPreprocessorOpts().SourceDateEpoch = 0;
    compiler_.createDiagnostics(&collector_, false);
    compiler_.createFileManager(files_);
    compiler_.createSourceManager(compiler_.getFileManager());
    return compiler_.createTarget();
  }

  // As CompilerInstance::ExecuteAction does, but without telling Clang where the stack begins: it would move deep
  // recursion to threads of 8 MiB, and this process's own stack is deeper than those.
  void run(clang::FrontendAction& action) {
    for (const auto& input : compiler_.getFrontendOpts().Inputs) {
      if (!action.BeginSourceFile(compiler_, input)) continue;
      // Errors inside are in the collector already.
      llvm::consumeError(action.Execute());
      action.EndSourceFile();
    }
  }

  Outcome answer(Findings findings, bool made) {
    const bool refused = !collector_.refusal().empty() || flags_refused_;
    Outcome outcome;
    if (refused) {
      outcome =
          failed(Finished::REFUSED, collector_.refusal().empty() ? collector_.first_error() : collector_.refusal());
    } else if (collector_.failed() || !made) {
      outcome = failed(Finished::INVALID_SOURCE,
                       collector_.failed() ? collector_.first_error() : "the compiler made no code and gave no reason");
    } else {
      outcome.finished.set_outcome(Finished::DONE);
    }
    Finished& finished = outcome.finished;
    collector_.move_into(finished);
    *finished.mutable_functions() = std::move(findings.functions);
    findings.counts.set_nesting(common::scan_source(job_.source).nesting);
    *finished.mutable_counts() = std::move(findings.counts);
    for (const std::string& flag : arguments_of(job_.start).asked) finished.add_flags_used(flag);
    return outcome;
  }

  clang::CompilerInstance& compiler() { return compiler_; }

 private:
  // Clang's own driver turns flags into a front end's arguments; it sees the memory view and runs nothing.
  bool make_invocation(bool warnings) {
    clang::DiagnosticsEngine diagnostics(llvm::makeIntrusiveRefCnt<clang::DiagnosticIDs>(),
                                         llvm::makeIntrusiveRefCnt<clang::DiagnosticOptions>(), &collector_, false);
    clang::driver::Driver driver("/jitc/clang", llvm::sys::getDefaultTargetTriple(), diagnostics, "jitc", memory_);
    driver.setCheckInputsExist(false);
    const std::vector<std::string> command =
        command_of(job_.start, text_ == Text::kSource ? "-xc" : "-xcpp-output", warnings);
    std::vector<const char*> words;
    for (const std::string& word : command) words.push_back(word.c_str());
    const std::unique_ptr<clang::driver::Compilation> compilation(driver.BuildCompilation(words));
    flags_refused_ = true;
    if (!compilation || collector_.failed()) return false;
    const auto& jobs = compilation->getJobs();
    if (jobs.size() != 1 || llvm::StringRef(jobs.begin()->getCreator().getName()) != "clang") {
      DiagnosticCollector::refuse(diagnostics, {}, "the flags ask for something else than one compile");
      return false;
    }
    const bool parsed =
        clang::CompilerInvocation::CreateFromArgs(compiler_.getInvocation(), jobs.begin()->getArguments(), diagnostics);
    if (!parsed || collector_.failed()) return false;
    if (compiler_.getFrontendOpts().ProgramAction != clang::frontend::EmitObj) {
      DiagnosticCollector::refuse(diagnostics, {}, "the flags ask for something else than object code");
      return false;
    }
    flags_refused_ = false;
    return true;
  }

  const Job& job_;
  Text text_;
  FileSystem memory_;
  FileSystem files_;
  DiagnosticCollector collector_;
  clang::CompilerInstance compiler_;
  bool flags_refused_ = false;
};

class EmitAction : public clang::EmitObjAction {
 public:
  explicit EmitAction(Findings& findings) : findings_(findings) {}

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    watch_preprocessor(compiler);
    return clang::EmitObjAction::BeginSourceFileAction(compiler);
  }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler,
                                                        llvm::StringRef file) override {
    auto generator = clang::EmitObjAction::CreateASTConsumer(compiler, file);
    if (!generator) return nullptr;
    // The inspector first: what it refuses is never generated.
    std::vector<std::unique_ptr<clang::ASTConsumer>> consumers;
    consumers.push_back(make_inspector(compiler, findings_));
    consumers.push_back(std::move(generator));
    return std::make_unique<clang::MultiplexConsumer>(std::move(consumers));
  }

 private:
  Findings& findings_;
};

class InspectAction : public clang::ASTFrontendAction {
 public:
  explicit InspectAction(Findings& findings) : findings_(findings) {}

 protected:
  bool BeginSourceFileAction(clang::CompilerInstance& compiler) override {
    watch_preprocessor(compiler);
    return true;
  }
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& compiler, llvm::StringRef) override {
    return make_inspector(compiler, findings_);
  }

 private:
  Findings& findings_;
};

Outcome refused(const common::Error& error) {
  return failed(Finished::REFUSED, error.thing + ": " + error.message + "; " + error.remedy);
}

// Out of memory only under a limit of ours.
Outcome outcome_of(const common::Error& error) {
  if (error.kind == common::ErrorKind::kInvalidSource) return failed(Finished::INVALID_SOURCE, error.message);
  if (error.kind != common::ErrorKind::kOutOfMemory) return failed(Finished::CRASHED, error.message);
  return is_own_limit_nearer() ? failed(Finished::OUT_OF_MEMORY, error.message, error.log) : refused_memory(error.log);
}

void finish_with_link(Outcome& outcome, llvm::StringRef object) {
  auto linked = link_shared({object.data(), object.size()});
  if (linked) {
    const auto image = common::read_all(linked->get(), "linked module");
    if (const auto safe = image ? check_loadable(*image) : common::Result<void>(std::unexpected(image.error()));
        !safe) {
      outcome.finished.set_outcome(safe.error().kind == common::ErrorKind::kRefused ? Finished::REFUSED
                                                                                    : Finished::CRASHED);
      outcome.finished.set_message(safe.error().message);
      return;
    }
    outcome.elf = std::move(*linked);
    return;
  }
  outcome.finished.MergeFrom(outcome_of(linked.error()).finished);
  outcome.finished.set_log(outcome.finished.log() + linked.error().log);
  if (outcome.finished.outcome() != Finished::INVALID_SOURCE) return;
  v1::Diagnostic& diagnostic = *outcome.finished.add_diagnostics();
  diagnostic.set_severity("error");
  diagnostic.set_message(linked.error().message);
}

}  // namespace

void initialise_compiler() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
}

std::string embedded_identity() {
  common::Hasher hasher("builtin-headers");
  for (const BuiltinHeader& header : builtin_headers()) hasher.text(header.name, header.text);
  return clang::getClangFullVersion() + ", headers " + hasher.finish().hex().substr(0, 16);
}

std::vector<std::string> embedded_command(const v1::WorkerCommand::Start& start) {
  return command_of(start, "-xc", true);
}

Outcome compile_embedded(const Job& job, CompileOptions options) {
  if (const auto names = check_header_names(job.headers); !names) return refused(names.error());
  Compile compile(job, Compile::Text::kSource);
  Findings findings;
  llvm::SmallVector<char, 0> object;
  if (compile.prepare(options.last, true)) {
    compile.compiler().setOutputStream(std::make_unique<llvm::raw_svector_ostream>(object));
    EmitAction action(findings);
    compile.run(action);
  }
  Outcome outcome = compile.answer(std::move(findings), !object.empty());
  if (outcome.finished.outcome() == Finished::DONE) {
    finish_with_link(outcome, {object.data(), object.size()});
  }
  return outcome;
}

Outcome inspect_preprocessed(const Job& job) {
  Compile compile(job, Compile::Text::kPreprocessed);
  Findings findings;
  if (compile.prepare(true, false)) {
    InspectAction action(findings);
    compile.run(action);
  }
  return compile.answer(std::move(findings), true);
}

}  // namespace jitc::worker
