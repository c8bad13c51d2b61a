// Reads shared objects that a compiler made: is the file whole, what does it export, would it run code when loaded?
#pragma once

#include <jitc/v1/worker.pb.h>

#include <string_view>
#include <vector>

#include "common/error.h"

namespace jitc::worker {

// kInternal: not a whole ELF shared object of this machine. kRefused: loading or unloading it would run code of its own
// (initialisers, finalisers, symbols resolved by a function), or would make stack or code writable and executable.
common::Result<void> check_loadable(std::string_view image);

// The functions of the dynamic symbol table, in its order; signatures are not known. The image must be loadable.
google::protobuf::RepeatedPtrField<v1::Function> exported_functions(std::string_view image);

// What an object file or a library (by its dynamic table) wants from others and gives to others. Views into the image;
// empty when it cannot be read.
struct SymbolNames {
  std::vector<std::string_view> undefined;
  std::vector<std::string_view> defined;
};
SymbolNames symbols_of_object(std::string_view image);
SymbolNames symbols_of_library(std::string_view image);

}  // namespace jitc::worker
