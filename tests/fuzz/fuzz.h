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
  // A few changes to any text.
  void change(std::string& text);
  std::size_t below(std::size_t end);  // a random number

 private:
  std::string piece();
  void change_once(std::string& text);

  std::mt19937_64 random_;
  std::vector<std::string> corpus_;
  std::vector<std::string> words_;
};

struct Target {
  std::string name;
  std::vector<std::string> corpus;
  std::vector<std::string> words;
  // Gets one input after the other and says what is wrong with it ("" for nothing).
  std::function<std::string(const std::string& input, Mutator& mutator)> check;
};

// What every fuzzer's main() does with its arguments LIMIT SEED [CORPUS]. LIMIT: seconds, or a number of inputs with an
// x behind it. An input that is wrong, or that the process dies of, is left in <name>.input. Exit status 1 when
// something was wrong.
int run(int argc, char** argv, const Target& target);
// The same with the files of this name (or with .gz behind it, through gzip) in the directories below CORPUS as corpus.
int run_over_files(int argc, char** argv, Target target, const std::string& file);

// Numbers as binary formats write them, the borders of their ranges among them.
std::vector<std::string> binary_numbers();

}  // namespace jitc::fuzz
