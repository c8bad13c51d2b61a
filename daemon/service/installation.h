// What on this node enters keys beside the request itself: external compilers and the directories that sources may
// include from. Both may change while the daemon lives: a fingerprint of names, sizes and times tells when to read
// anew.
//
// A compiler's identity has the contents of its driver, of the programs that the driver names (-print-prog-name), of
// the shared libraries that these are linked with, and names, sizes and times of its system headers. Of a script that
// wraps a compiler nothing but its own text is known: it must name everything that it runs by versioned paths.
#pragma once

#include <chrono>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::service {

class Installation {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `compilers`: "gcc" or paths. One that is not there is left out; `gcc` is offered wherever it is found.
  Installation(std::vector<std::string> compilers, std::vector<std::string> include_roots);

  // Reads everything again. Slow (hundreds of milliseconds); any thread, one at a time.
  void inspect();
  // Did anything change since (or was it never read)? Only looks at names, sizes and times. System headers are many:
  // a look at them that began at `fresh` or later is good enough. One at a time.
  bool changed(Time fresh = std::chrono::steady_clock::now());

  // What may be asked for, known without reading anything: identities are empty.
  std::vector<common::CompilerIdentity> offered() const;
  // Empty identities and digests: of something that could not be read whole, so that nobody knows what it is.
  const std::vector<common::CompilerIdentity>& compilers() const { return compilers_; }
  const std::vector<std::pair<std::string, std::string>>& include_roots() const { return roots_; }

 private:
  common::Digest fingerprint(Time fresh);
  const common::Digest& system_headers(Time fresh);

  std::vector<std::string> compiler_paths_, root_paths_;
  std::vector<common::CompilerIdentity> compilers_;
  std::vector<std::pair<std::string, std::string>> roots_;  // path, content digest
  std::vector<std::string> files_;                          // of the compilers: drivers, helpers, their libraries
  std::set<std::string> system_includes_;                   // directories
  common::Digest seen_;
  common::Digest system_seen_;
  Time system_looked_;  // when the look began that gave it
};

}  // namespace jitc::service
