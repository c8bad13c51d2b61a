// What fuzzers are made of. Each is one Target, which two programs run: the bounded run of ctest (bounded_run.cc), with
// any compiler and the same inputs for the same seed on every machine, and libFuzzer's (coverage_run.cc), which keeps
// the inputs that reach new code and changes those further.
#pragma once

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace jitc::fuzz {

// A plain seeded mutator.
class Mutator {
 public:
  // `words` are inserted and exchanged beside pieces of the corpus.
  Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words);
  // As if made with this seed.
  void restart(std::uint64_t seed) { random_.seed(seed); }
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
  // Says what is wrong with an input ("" for nothing), and of the same input always the same.
  std::function<std::string(const std::string& input)> check;
  // Changes an input as its format is built, where changes of its bytes would mostly make it none. Not every target has
  // one.
  std::function<void(std::string& input, Mutator& mutator)> change;
};

// Every fuzzer defines its own; called once.
Target target();

// The files of this name (or with .gz behind it, through gzip) in the directories below tests/data/corpus, but for very
// large ones.
std::vector<std::string> corpus_files(const std::string& file);

// Numbers as binary formats write them, the borders of their ranges among them.
std::vector<std::string> binary_numbers();

}  // namespace jitc::fuzz
