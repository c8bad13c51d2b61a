// jitc cc: a C compiler's command line, served by the daemon.
#pragma once

#include <string>
#include <vector>

namespace jitc::cli {

// `link`: a compiler's name, when this program was called by a link that bears it; else empty. The exit code.
int run_cc(const std::string& link, std::vector<std::string> words);

}  // namespace jitc::cli
