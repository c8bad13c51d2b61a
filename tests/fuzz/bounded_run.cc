// The bounded run of one fuzzer:
//   NAME SECONDS|NUMBERx SEED
// An input that is wrong, or that the process dies of, is left in <name>.input. Exit status 1 when something was wrong.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "tests/fuzz/fuzz.h"

namespace {

using jitc::fuzz::Mutator;
using jitc::fuzz::Target;

constexpr double kMostSeconds = 5;  // for one input: more is a hang

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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

std::string next_input(const Target& target, Mutator& mutator) {
  std::string input = mutator.next();
  if (target.change && mutator.below(2) == 0) target.change(input, mutator);
  return input;
}

int run(const Target& target, const Limit& limit, std::uint64_t seed) {
  Mutator mutator(seed, target.corpus, target.words);
  KeptInput kept(target.name + ".input");
  const auto start = std::chrono::steady_clock::now();
  const auto is_over = [&](std::size_t count) {
    return limit.inputs > 0 ? count >= limit.inputs : seconds_since(start) >= limit.seconds;
  };
  std::size_t count = 0;
  for (; !is_over(count); ++count) {
    const std::string input = next_input(target, mutator);
    if (!kept.set(input)) {
      std::fprintf(stderr, "%s: cannot write %s\n", target.name.c_str(), kept.path().c_str());
      return 2;
    }
    const auto begin = std::chrono::steady_clock::now();
    std::string wrong = target.check(input);
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

}  // namespace

int main(int argc, char** argv) {
  const auto limit = argc == 3 ? limit_of(argv[1]) : std::nullopt;
  if (!limit) {
    std::fprintf(stderr, "usage: %s SECONDS|NUMBERx SEED\n", argv[0]);
    return 2;
  }
  const Target target = jitc::fuzz::target();
  if (!target.corpus.empty()) return run(target, *limit, std::strtoull(argv[2], nullptr, 10));
  std::fprintf(stderr, "%s: no corpus\n", target.name.c_str());
  return 2;
}
