// A plain seeded mutator: the same seed gives the same inputs on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace jitc::fuzz {

class Mutator {
 public:
  // `words` are inserted and exchanged beside pieces of the corpus.
  Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words);
  // One of the corpus with a few changes: bytes, words, pieces of itself or of another.
  std::string next();
  std::size_t below(std::size_t end);  // a random number

 private:
  std::string piece();
  void change(std::string& text);

  std::mt19937_64 random_;
  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
};

// The corpus's files of this name (or with .gz behind it, through gzip), up to `most_bytes` each.
std::vector<std::string> read_corpus(const std::string& directory, const std::string& file, std::size_t most_bytes);

// What every fuzzer's main() does: SECONDS SEED CORPUS. `check` gets one input after the other and says what is wrong
// with it ("" for nothing); an input that is wrong, or that the process dies of, is left in <name>.input. Exit status 1
// when something was wrong.
int run(int argc, char** argv, const std::string& name, const std::string& file, std::vector<std::string> words,
        const std::function<std::string(const std::string& input, Mutator& mutator)>& check);

}  // namespace jitc::fuzz
