// Which compiler stands behind `jitc cc`, and whether its doings are known well enough to keep what it makes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "client/cli/context.h"
#include "common/error.h"

namespace jitc::cli {

// "gcc", "x86_64-linux-gnu-g++-12", "clang": is it what compilers are called?
bool is_compiler_name(std::string_view name);

struct CcCompiler {
  std::string path;                    // absolute; of a file that can be run
  std::string name;                    // as its argv[0]
  std::vector<std::string> arguments;  // what it is told
  // GCC's own driver, in C or C++: not a script, not another program that runs one (mpicc, ccache).
  bool is_known = false;
};
// `words` are those of the command line behind `jitc cc`, or behind a link's name. `name`: what the link is called,
// when it bears a compiler's name; else empty. The compiler is the first word, if that is the name of a program and no
// input of a compiler; else the link's name; else the setting cc_compiler. A program that is this one is never taken.
common::Result<CcCompiler> find_compiler(const Context& context, const std::string& name,
                                         std::vector<std::string> words);

}  // namespace jitc::cli
