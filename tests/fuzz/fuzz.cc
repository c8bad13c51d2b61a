#include "tests/fuzz/fuzz.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

namespace jitc::fuzz {
namespace {

constexpr std::size_t kMostPiece = 200;
constexpr std::size_t kMostBytes = 60000;  // of a file

std::string read_all(const std::filesystem::path& path) {
  const std::string command = (path.extension() == ".gz" ? "gzip -dc '" : "cat '") + path.string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  std::string text;
  std::array<char, 65536> buffer;
  while (pipe) {
    const std::size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (got == 0) break;
    text.append(buffer.data(), got);
  }
  return text.size() <= kMostBytes ? text : std::string();
}

}  // namespace

Mutator::Mutator(std::uint64_t seed, std::vector<std::string> corpus, std::vector<std::string> words)
    : random_(seed), corpus_(std::move(corpus)), words_(std::move(words)) {}

std::size_t Mutator::below(std::size_t end) { return end == 0 ? 0 : random_() % end; }

std::string Mutator::piece() {
  const std::string& from = corpus_[below(corpus_.size())];
  return from.substr(below(from.size()), 1 + below(kMostPiece));
}

void Mutator::change_once(std::string& text) {
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

void Mutator::change(std::string& text) {
  for (std::size_t changes = below(8); changes > 0; --changes) change_once(text);
}

std::string Mutator::next() {
  std::string text = corpus_[below(corpus_.size())];
  change(text);
  return text;
}

std::vector<std::string> corpus_files(const std::string& file) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(JITC_CORPUS_DIR))
    for (const char* end : {"", ".gz"})
      if (const auto path = entry.path() / (file + end); std::filesystem::exists(path)) paths.push_back(path);
  std::ranges::sort(paths);
  std::vector<std::string> texts;
  for (const auto& path : paths)
    if (std::string text = read_all(path); !text.empty()) texts.push_back(std::move(text));
  return texts;
}

std::vector<std::string> binary_numbers() {
  std::vector<std::string> words;
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{0x7f}, std::uint64_t{0xff}, std::uint64_t{0x7fffffff},
        std::uint64_t{0xffffffff}, std::uint64_t{1} << 63, ~std::uint64_t{0}})
    for (const int size : {1, 4, 8}) {
      std::string word;
      for (int i = 0; i < size; ++i) word += static_cast<char>(number >> (8 * i));
      words.push_back(std::move(word));
    }
  return words;
}

}  // namespace jitc::fuzz
