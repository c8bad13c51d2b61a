#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>

namespace jitc::fuzz {
namespace {

constexpr std::size_t kMostPiece = 200;
constexpr double kMostSeconds = 5;  // for one input: more is a hang

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string read_all(const std::filesystem::path& path, std::size_t most_bytes) {
  const std::string command = (path.extension() == ".gz" ? "gzip -dc '" : "cat '") + path.string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 65536> buffer;
  while (pipe) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (got == 0) break;
    text.append(buffer.data(), got);
  }
  return text.size() <= most_bytes ? text : std::string();
}

}  // namespace

Mutator::Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words)
    : random_(seed), corpus_(std::move(corpus)), words_(std::move(words)) {}

std::size_t Mutator::below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

std::string Mutator::piece() {
  const std::string& from = corpus_[below(corpus_.size())];
  return from.substr(below(from.size()), 1 + below(kMostPiece));
}

void Mutator::change(std::string& text) {
  const std::size_t at = below(text.size() + 1);
  const std::size_t length = std::min(text.size() - at, 1 + below(below(2) == 0 ? 4 : kMostPiece));
  switch (below(6)) {
    case 0:
      text.erase(at, length);
      break;
    case 1:
      text.insert(at, text.substr(below(text.size() + 1), 1 + below(kMostPiece)));
      break;
    case 2:
      text.insert(at, piece());
      break;
    case 3:
      if (at < text.size()) text[at] = static_cast<char>(below(256));
      break;
    default:
      text.replace(at, below(3) == 0 ? 0 : length, words_[below(words_.size())]);
      break;
  }
}

std::string Mutator::next() {
  std::string text = corpus_[below(corpus_.size())];
  for (std::size_t changes = below(8); changes > 0; --changes) change(text);
  return text;
}

std::vector<std::string> read_corpus(const std::string& directory, const std::string& file, std::size_t most_bytes) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    for (const char* end : {"", ".gz"})
      if (const auto path = entry.path() / (file + end); std::filesystem::exists(path)) paths.push_back(path);
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto& path : paths)
    if (std::string text = read_all(path, most_bytes); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

int run(int argc, char** argv, const std::string& name, const std::string& file, std::vector<std::string> words,
        const std::function<std::string(const std::string& input, Mutator& mutator)>& check) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s SECONDS SEED CORPUS\n", name.c_str());
    return 2;
  }
  constexpr std::size_t kMostBytes = 60000;
  const double limit = std::strtod(argv[1], nullptr);
  auto corpus = read_corpus(argv[3], file, kMostBytes);
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no %s below %s\n", name.c_str(), file.c_str(), argv[3]);
    return 2;
  }
  Mutator mutator(std::strtoull(argv[2], nullptr, 10), std::move(corpus), std::move(words));
  const std::string kept = name + ".input";
  const auto start = std::chrono::steady_clock::now();
  std::size_t count = 0;
  for (; seconds_since(start) < limit; ++count) {
    const std::string input = mutator.next();
    std::ofstream(kept, std::ios::binary) << input;
    const auto begin = std::chrono::steady_clock::now();
    std::string wrong = check(input, mutator);
    if (wrong.empty() && seconds_since(begin) > kMostSeconds) wrong = "it took too long";
    if (wrong.empty()) continue;
    std::fprintf(stderr, "%s: input %zu, left in %s: %s\n", name.c_str(), count, kept.c_str(), wrong.c_str());
    return 1;
  }
  std::filesystem::remove(kept);
  std::printf("%zu inputs\n", count);
  return 0;
}

}  // namespace jitc::fuzz
