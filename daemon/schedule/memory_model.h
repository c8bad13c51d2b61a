// Predicts a compile's peak memory from a linear scan of the text, the flags and the compiler; learns from peaks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "daemon/schedule/features.h"

namespace jitc::schedule {

class MemoryModel {
 public:
  // Peak bytes of the child tree, never below the cost of an empty source with that compiler.
  std::uint64_t predict(const Features& features) const;
  // A measured peak corrects later predictions of the same family (compiler, optimisation, size class). Corrections
  // rise at once and fall slowly: too high costs a little concurrency, too low costs a failed compile.
  void learn(const Features& features, std::uint64_t peak_bytes);
  // What a compile of this prediction is allowed, and so holds of the budget: a quarter more, the model's usual error,
  // and at least 48 MiB more, so at least 48 MiB above an empty source.
  static std::uint64_t limit_for(std::uint64_t predicted);

 private:
  using Family = std::tuple<std::string, int, int>;
  static Family family_of(const Features& features);
  std::map<Family, double> corrections_;  // factor on what the text adds to an empty source
};

}  // namespace jitc::schedule
