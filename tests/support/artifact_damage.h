// Artifacts as broken disks, half written copies and clumsy hands leave them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/artifact.h"

namespace jitc::testing {

// How many of something, or where random numbers begin: TEST_SEED=7 in the environment, for one.
inline std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Damage {
  std::size_t of = 0;  // which artifact
  const char* kind = "";
  std::string bytes;  // never those of artifact `of`
};

// The same seed and artifacts give the same damages.
class Damager {
 public:
  // Two or more whole artifacts, unlike each other.
  Damager(std::uint64_t seed, std::vector<std::string> artifacts)
      : random_(seed), artifacts_(std::move(artifacts)), parts_(artifacts_.size()) {
    for (std::size_t i = 0; i < artifacts_.size(); ++i) {
      const auto view = common::verify_artifact(artifacts_[i]);
      if (!view) throw std::runtime_error(common::to_line(view.error()));
      const std::size_t elf = view->elf.size(), manifest = view->manifest.size();
      parts_[i] = {artifacts_[i].substr(0, elf), artifacts_[i].substr(elf, manifest),
                   artifacts_[i].substr(elf + manifest)};
    }
  }

  Damage next() {
    Damage damage{.of = below(artifacts_.size())};
    do damage_one(damage);
    while (damage.bytes == artifacts_[damage.of]);
    return damage;
  }

 private:
  using Parts = std::array<std::string, 3>;  // image, manifest, footer

  std::size_t below(std::size_t end) { return random_() % end; }
  std::size_t another_than(std::size_t one) { return (one + 1 + below(artifacts_.size() - 1)) % artifacts_.size(); }

  std::string random_bytes(std::size_t count) {
    std::string bytes(count, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  void damage_one(Damage& damage) {
    std::string& bytes = damage.bytes = artifacts_[damage.of];
    const std::string& other = artifacts_[another_than(damage.of)];
    const std::size_t at = below(bytes.size());
    switch (below(12)) {
      case 0:
      case 1:
        damage.kind = "bits flipped";
        for (std::size_t left = 1 + below(3); left > 0; --left) flip_bit(bytes);
        break;
      case 2:
        damage.kind = "cut short";
        bytes.resize(at);
        break;
      case 3:
        damage.kind = "cut short to a round size";
        bytes.resize(std::min(bytes.size() - 1, std::size_t{1} << below(16)));
        break;
      case 4:
        damage.kind = "bytes appended";
        bytes += below(2) == 0 ? random_bytes(1 + below(200)) : std::string(1 + below(5000), '\0');
        break;
      case 5:
        damage.kind = "another artifact appended";
        bytes += below(2) == 0 ? other : parts_[damage.of][2];
        break;
      case 6:
        damage.kind = "a page of zeros";
        zero_page(bytes);
        break;
      case 7:
        damage.kind = "contents of another artifact";
        bytes = other;
        break;
      case 8:
        damage.kind = "parts of several artifacts";
        bytes = spliced(damage.of);
        break;
      case 9:
        damage.kind = "bytes taken out";
        bytes.erase(at, 1 + below(600));
        break;
      case 10:
        damage.kind = "bytes overwritten";
        bytes.replace(at, std::min(bytes.size() - at, 1 + below(64)), random_bytes(1 + below(64)));
        break;
      default:
        damage.kind = "the end of another artifact";
        bytes = bytes.substr(0, at) + other.substr(std::min(at, other.size()));
        break;
    }
  }

  void flip_bit(std::string& bytes) {
    char& byte = bytes[below(bytes.size())];
    byte = static_cast<char>(byte ^ (1 << below(8)));
  }

  void zero_page(std::string& bytes) {
    constexpr std::array<std::size_t, 3> kPages{512, 4096, 65536};
    const std::size_t page = kPages[below(kPages.size())];
    const std::size_t begin = below(bytes.size()) / page * page;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), std::min(page, bytes.size() - begin), '\0');
  }

  // Each part from this artifact or from another.
  std::string spliced(std::size_t of) {
    std::string bytes;
    for (std::size_t part = 0; part < 3; ++part) bytes += parts_[below(2) == 0 ? of : another_than(of)][part];
    return bytes;
  }

  std::mt19937_64 random_;
  std::vector<std::string> artifacts_;
  std::vector<Parts> parts_;
};

}  // namespace jitc::testing
