#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

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

namespace {

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

// The input that is looked at, in a file that outlives the process. One descriptor for all: cutting a file by its name
// would make some file systems write through to the disk each time.
class KeptInput {
 public:
  explicit KeptInput(std::string path) : path_(std::move(path)) {
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  }
  ~KeptInput() { ::close(fd_); }
  KeptInput(const KeptInput&) = delete;
  KeptInput& operator=(const KeptInput&) = delete;

  bool set(const std::string& input) {
    return ::pwrite(fd_, input.data(), input.size(), 0) == static_cast<ssize_t>(input.size()) &&
           ::ftruncate(fd_, static_cast<off_t>(input.size())) == 0;
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
};

struct Limit {
  double seconds = 0;  // of these two the one that is not 0
  std::size_t inputs = 0;
};

std::optional<Limit> limit_of(const char* text) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || !(number > 0) || number > 1e12) return std::nullopt;
  if (std::string_view(end) == "x") return Limit{.inputs = static_cast<std::size_t>(number)};
  return *end == '\0' ? std::optional(Limit{.seconds = number}) : std::nullopt;
}

int usage(const std::string& name) {
  std::fprintf(stderr, "usage: %s SECONDS|NUMBERx SEED [CORPUS]\n", name.c_str());
  return 2;
}

}  // namespace

int run(int argc, char** argv, const Target& target) {
  const auto limit = argc >= 3 ? limit_of(argv[1]) : std::nullopt;
  if (!limit) return usage(target.name);
  Mutator mutator(std::strtoull(argv[2], nullptr, 10), target.corpus, target.words);
  KeptInput kept(target.name + ".input");
  const auto start = std::chrono::steady_clock::now();
  const auto is_over = [&](std::size_t count) {
    return limit->inputs > 0 ? count >= limit->inputs : seconds_since(start) >= limit->seconds;
  };
  std::size_t count = 0;
  for (; !is_over(count); ++count) {
    const std::string input = mutator.next();
    if (!kept.set(input)) {
      std::fprintf(stderr, "%s: cannot write %s\n", target.name.c_str(), kept.path().c_str());
      return 2;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::string wrong = target.check(input, mutator);
    if (wrong.empty() && seconds_since(begin) > kMostSeconds) wrong = "it took too long";
    if (wrong.empty()) continue;
    std::fprintf(stderr, "%s: input %zu, left in %s: %s\n", target.name.c_str(), count, kept.path().c_str(),
                 wrong.c_str());
    return 1;
  }
  std::filesystem::remove(kept.path());
  std::printf("%s: %zu inputs\n", target.name.c_str(), count);
  return 0;
}

int run_over_files(int argc, char** argv, Target target, const std::string& file) {
  constexpr std::size_t kMostBytes = 60000;
  if (argc != 4) return usage(target.name);
  target.corpus = read_corpus(argv[3], file, kMostBytes);
  if (!target.corpus.empty()) return run(argc, argv, target);
  std::fprintf(stderr, "%s: no %s below %s\n", target.name.c_str(), file.c_str(), argv[3]);
  return 2;
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
