#include "daemon/worker/inspection.h"

#include <clang/AST/ASTContext.h>
#include <clang/AST/Attr.h>
#include <clang/AST/RecursiveASTVisitor.h>
#include <clang/Lex/PPCallbacks.h>
#include <clang/Lex/Preprocessor.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "daemon/worker/diagnostics.h"

namespace jitc::worker {
namespace {

// Sections whose contents the dynamic linker calls.
constexpr std::array<llvm::StringRef, 7> kCalledSections = {".init",          ".fini",  ".init_array", ".fini_array",
                                                            ".preinit_array", ".ctors", ".dtors"};

class Visitor : public clang::RecursiveASTVisitor<Visitor> {
 public:
  Visitor(clang::ASTContext& context, Findings& findings)
      : diagnostics_(context.getDiagnostics()), policy_(context.getPrintingPolicy()), findings_(findings) {
    policy_.TerseOutput = true;
    policy_.PolishForDeclaration = true;
  }

  // A top-level declaration with all that is in it.
  void inspect(clang::Decl* declaration) {
    nodes_ = 0;
    TraverseDecl(declaration);
    auto& counts = findings_.counts;
    counts.set_largest_function_nodes(std::max<std::uint64_t>(counts.largest_function_nodes(), nodes_));
  }

  bool VisitDecl(clang::Decl* declaration) {
    for (const clang::Attr* attribute : declaration->attrs()) check(*attribute);
    return true;
  }
  bool VisitFileScopeAsmDecl(clang::FileScopeAsmDecl* declaration) { return refuse_asm(declaration->getBeginLoc()); }
  bool VisitAsmStmt(clang::AsmStmt* statement) { return refuse_asm(statement->getBeginLoc()); }

  bool VisitFunctionDecl(clang::FunctionDecl* function) {
    if (!function->isThisDeclarationADefinition()) return true;
    auto& counts = findings_.counts;
    counts.set_functions(counts.functions() + 1);
    if (is_exported(*function)) {
      v1::Function& exported = *findings_.functions.Add();
      exported.set_name(function->getName().str());
      llvm::raw_string_ostream text(*exported.mutable_signature());
      function->print(text, policy_);
    }
    return true;
  }
  bool VisitStmt(clang::Stmt* statement) {
    ++nodes_;
    auto& counts = findings_.counts;
    if (!llvm::isa<clang::Expr>(statement)) {
      counts.set_statements(counts.statements() + 1);
    } else if (llvm::isa<clang::CallExpr>(statement)) {
      counts.set_calls(counts.calls() + 1);
    } else if (llvm::isa<clang::BinaryOperator, clang::UnaryOperator, clang::ConditionalOperator>(statement)) {
      counts.set_operators(counts.operators() + 1);
    }
    return true;
  }

 private:
  static bool is_exported(const clang::FunctionDecl& function) {
    if (!function.isExternallyVisible() || function.getVisibility() != clang::DefaultVisibility) return false;
    return !function.isInlined() || function.isInlineDefinitionExternallyVisible();
  }
  bool refuse(clang::SourceLocation place, std::string_view reason) {
    DiagnosticCollector::refuse(diagnostics_, place, reason);
    return true;
  }
  bool refuse_asm(clang::SourceLocation place) {
    return refuse(place, "assembler is not compiled: it can read files and hide what it does; write it in C");
  }
  void check(const clang::Attr& attribute) {
    const clang::SourceLocation place = attribute.getLocation();
    if (llvm::isa<clang::ConstructorAttr, clang::DestructorAttr>(attribute)) {
      refuse(place, "a module must not run code when it is loaded or unloaded (constructor, destructor)");
    } else if (llvm::isa<clang::IFuncAttr, clang::TargetClonesAttr, clang::CPUDispatchAttr, clang::CPUSpecificAttr>(
                   attribute)) {
      refuse(
          place,
          "a module must not run code when it is loaded (a function chosen at load time); ask for the instruction set "
          "by --isa");
    } else if (llvm::isa<clang::TargetAttr, clang::TargetVersionAttr>(attribute)) {
      refuse(place, std::string("attribute ") + attribute.getSpelling() +
                        " raises the instruction set beyond the agreed level; ask for the level by --isa");
    } else if (const auto* section = llvm::dyn_cast<clang::SectionAttr>(&attribute)) {
      const llvm::StringRef name = section->getName();
      const bool called = std::ranges::any_of(kCalledSections, [name](llvm::StringRef known) {
        return name == known || (name.starts_with(known) && name[known.size()] == '.');
      });
      if (!std::ranges::all_of(
              name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '$'; })) {
        refuse(place, "section names may hold letters, digits, _ . $ only");
      }
      if (called) refuse(place, "a module must not run code when it is loaded (section \"" + name.str() + "\")");
    }
  }

  clang::DiagnosticsEngine& diagnostics_;
  clang::PrintingPolicy policy_;
  Findings& findings_;
  std::uint64_t nodes_ = 0;
};

class Inspector : public clang::ASTConsumer {
 public:
  Inspector(clang::CompilerInstance& compiler, Findings& findings) : compiler_(compiler), findings_(findings) {}

  bool HandleTopLevelDecl(clang::DeclGroupRef group) override {
    Visitor visitor(compiler_.getASTContext(), findings_);
    for (clang::Decl* declaration : group) visitor.inspect(declaration);
    return true;
  }

 private:
  clang::CompilerInstance& compiler_;
  Findings& findings_;
};

class TimeWatch : public clang::PPCallbacks {
 public:
  explicit TimeWatch(clang::CompilerInstance& compiler) : compiler_(compiler) {}
  void MacroExpands(const clang::Token& name, const clang::MacroDefinition&, clang::SourceRange,
                    const clang::MacroArgs*) override {
    const clang::IdentifierInfo* identifier = name.getIdentifierInfo();
    if (identifier == nullptr) return;
    const llvm::StringRef text = identifier->getName();
    if (text != "__DATE__" && text != "__TIME__" && text != "__TIMESTAMP__") return;
    DiagnosticCollector::refuse(compiler_.getDiagnostics(), name.getLocation(),
                                text.str() + " would make every compile another one; take the time at run time");
  }

 private:
  clang::CompilerInstance& compiler_;
};

}  // namespace

std::unique_ptr<clang::ASTConsumer> make_inspector(clang::CompilerInstance& compiler, Findings& findings) {
  return std::make_unique<Inspector>(compiler, findings);
}

void watch_preprocessor(clang::CompilerInstance& compiler) {
  compiler.getPreprocessor().addPPCallbacks(std::make_unique<TimeWatch>(compiler));
}

}  // namespace jitc::worker
