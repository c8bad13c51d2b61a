// A fuzzer under libFuzzer, which has main() and the arguments. Into the first directory among these the corpus is
// written, for libFuzzer to begin with.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/fuzz.h"

namespace {

const jitc::fuzz::Target& the_target() {
  static const jitc::fuzz::Target target = jitc::fuzz::target();
  return target;
}

}  // namespace

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  char** const end = *argv + *argc;
  char** const directory =
      std::find_if(*argv + 1, end, [](const char* argument) { return std::filesystem::is_directory(argument); });
  if (directory == end) return 0;
  std::size_t number = 0;
  for (const std::string& text : the_target().corpus)
    std::ofstream(std::string(*directory) + "/seed-" + std::to_string(number++), std::ios::binary) << text;
  return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = the_target().check(std::string(data, data + size));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", the_target().name.c_str(), wrong.c_str());
  std::abort();  // libFuzzer keeps the input
}

// Half of the changes are libFuzzer's, which knows what the code compares with; it does not know the format.
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  static jitc::fuzz::Mutator mutator(0, the_target().corpus, the_target().words);
  mutator.restart(seed);
  std::string text(data, data + size);
  if (mutator.below(2) != 0) {
    if (the_target().change && mutator.below(2) == 0) {
      the_target().change(text, mutator);
    } else {
      mutator.change(text);
    }
    if (text.size() <= most) return static_cast<std::size_t>(std::ranges::copy(text, data).out - data);
  }
  return LLVMFuzzerMutate(data, size, most);
}

}  // extern "C"
