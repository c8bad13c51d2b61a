#include "daemon/worker/elf_image.h"

#include <llvm/Object/ELF.h>

#include <algorithm>
#include <array>
#include <string>

namespace jitc::worker {
namespace {

using Elf = llvm::object::ELFFile<llvm::object::ELF64LE>;
using llvm::ELF::R_X86_64_IRELATIVE;

constexpr std::array kCodeTags = {llvm::ELF::DT_INIT, llvm::ELF::DT_FINI, llvm::ELF::DT_INIT_ARRAY,
                                  llvm::ELF::DT_FINI_ARRAY, llvm::ELF::DT_PREINIT_ARRAY};

std::unexpected<common::Error> broken(llvm::Error error) {
  return common::fail(common::ErrorKind::kInternal, "not a whole shared object: " + llvm::toString(std::move(error)),
                      "module");
}

std::unexpected<common::Error> runs_code(const std::string& how) {
  return common::fail(common::ErrorKind::kRefused, "a module must not run code when it is loaded or unloaded: " + how,
                      "module", "call a function of the module instead");
}

std::unexpected<common::Error> weakens(const std::string& how) {
  return common::fail(common::ErrorKind::kRefused, "a module must not weaken the process that loads it: " + how,
                      "module", "leave out functions within functions and code that is not position independent");
}

common::Result<void> check_segments(const Elf& elf, std::size_t size) {
  auto segments = elf.program_headers();
  if (!segments) return broken(segments.takeError());
  bool stack_told = false;
  for (const auto& segment : *segments) {
    if (segment.p_type == llvm::ELF::PT_GNU_STACK) {
      stack_told = true;
      if ((segment.p_flags & llvm::ELF::PF_X) != 0) return weakens("it asks for an executable stack");
    }
    if (segment.p_type != llvm::ELF::PT_LOAD) continue;
    if (segment.p_offset > size || segment.p_filesz > size - segment.p_offset) {
      return common::fail(common::ErrorKind::kInternal, "not a whole shared object: it ends within a segment",
                          "module");
    }
  }
  // Without a word about the stack the loader makes it executable.
  return stack_told ? common::Result<void>() : weakens("it does not say that its stack is not executable");
}

bool writes_to_code(const Elf::Elf_Dyn& entry) {
  return entry.d_tag == llvm::ELF::DT_TEXTREL ||
         (entry.d_tag == llvm::ELF::DT_FLAGS && (entry.getVal() & llvm::ELF::DF_TEXTREL) != 0);
}

common::Result<void> check_dynamic(const Elf& elf) {
  auto entries = elf.dynamicEntries();
  if (!entries) return broken(entries.takeError());
  for (const auto& entry : *entries) {
    if (std::ranges::find(kCodeTags, static_cast<unsigned>(entry.d_tag)) != kCodeTags.end()) {
      return runs_code(elf.getDynamicTagAsString(entry.d_tag));
    }
    if (writes_to_code(entry)) return weakens("its code is written to when it is loaded (TEXTREL)");
  }
  return {};
}

common::Result<void> check_relocations(const Elf& elf) {
  auto sections = elf.sections();
  if (!sections) return broken(sections.takeError());
  for (const auto& section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_RELA) continue;
    auto relocations = elf.relas(section);
    if (!relocations) return broken(relocations.takeError());
    for (const auto& relocation : *relocations) {
      if (relocation.getType(false) == R_X86_64_IRELATIVE) return runs_code("a function is chosen at load time");
    }
  }
  return {};
}

// Global symbols of the table of this type.
SymbolNames global_symbols(std::string_view image, unsigned table) {
  SymbolNames found;
  auto elf = Elf::create(llvm::StringRef(image.data(), image.size()));
  auto sections = elf ? elf->sections() : llvm::Expected<Elf::Elf_Shdr_Range>(elf.takeError());
  if (!sections) {
    llvm::consumeError(sections.takeError());
    return found;
  }
  for (const auto& section : *sections) {
    if (section.sh_type != table) continue;
    auto names = elf->getStringTableForSymtab(section);
    auto symbols = elf->symbols(&section);
    if (!names || !symbols) {
      llvm::consumeError(names.takeError());
      llvm::consumeError(symbols.takeError());
      continue;
    }
    for (const auto& symbol : *symbols) {
      if (symbol.getBinding() == llvm::ELF::STB_LOCAL) continue;
      auto name = symbol.getName(*names);
      if (!name) {
        llvm::consumeError(name.takeError());
        continue;
      }
      (symbol.isUndefined() ? found.undefined : found.defined).emplace_back(name->data(), name->size());
    }
  }
  return found;
}

}  // namespace

SymbolNames symbols_of_object(std::string_view image) { return global_symbols(image, llvm::ELF::SHT_SYMTAB); }
SymbolNames symbols_of_library(std::string_view image) { return global_symbols(image, llvm::ELF::SHT_DYNSYM); }

common::Result<void> check_loadable(std::string_view image) {
  auto elf = Elf::create(llvm::StringRef(image.data(), image.size()));
  if (!elf) return broken(elf.takeError());
  const auto& header = elf->getHeader();
  if (!header.checkMagic() || header.e_type != llvm::ELF::ET_DYN || header.e_machine != llvm::ELF::EM_X86_64) {
    return common::fail(common::ErrorKind::kInternal, "not a shared object of this machine", "module");
  }
  if (auto segments = check_segments(*elf, image.size()); !segments) return segments;
  if (auto dynamic = check_dynamic(*elf); !dynamic) return dynamic;
  return check_relocations(*elf);
}

google::protobuf::RepeatedPtrField<v1::Function> exported_functions(std::string_view image) {
  google::protobuf::RepeatedPtrField<v1::Function> functions;
  auto elf = llvm::cantFail(Elf::create(llvm::StringRef(image.data(), image.size())));
  for (const auto& section : llvm::cantFail(elf.sections())) {
    if (section.sh_type != llvm::ELF::SHT_DYNSYM) continue;
    auto names = elf.getStringTableForSymtab(section);
    auto symbols = elf.symbols(&section);
    if (!names || !symbols) {
      llvm::consumeError(names.takeError());
      llvm::consumeError(symbols.takeError());
      continue;
    }
    for (const auto& symbol : *symbols) {
      if (symbol.getType() != llvm::ELF::STT_FUNC || symbol.isUndefined()) continue;
      auto name = symbol.getName(*names);
      if (name) {
        functions.Add()->set_name(name->str());
      } else {
        llvm::consumeError(name.takeError());
      }
    }
  }
  return functions;
}

}  // namespace jitc::worker
