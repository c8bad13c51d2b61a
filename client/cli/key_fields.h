// What a key is made of, field by field, and how two of them differ. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/artifact.h"
#include "common/identity.h"
#include "common/request.h"

namespace jitc::cli {

struct KeyField {
  std::string name;
  std::optional<std::vector<std::string>> values;  // of a list all, else one; nothing: not known
  std::string note;                                // for people, not compared
};
using KeyFields = std::vector<KeyField>;  // always the same names in the same order

// What makes a key of a request, as far as it is known without a daemon.
struct KeyTerms {
  std::optional<std::string> compiler_identity, triple, isa;
  std::optional<std::string> includes;  // digest over the include roots; "" when there are none
};
KeyFields fields_of(const common::Request& request, const KeyTerms& terms);
// Manifests of earlier versions do not have all fields.
KeyFields fields_of(const common::Manifest& manifest);

// "-O3 -g0", "(none)", "(not known)".
std::string shown(const KeyField& field);

struct FieldDifference {
  std::string name;
  std::string here, there;  // of lists what only the one has; the whole lists when only their order differs
  bool follows = false;     // from another difference: another compiler has another identity
};
// Of what both sides know.
std::vector<FieldDifference> differences(const KeyFields& here, const KeyFields& there);
// How far two are from each other: fields that differ, or of which only `there` does not know them, without those that
// follow from others.
std::size_t distance(const KeyFields& here, const KeyFields& there);

struct LineDifference {
  std::size_t line = 0;  // 1-based
  std::string here, there;
};
// The first line in which two texts differ, whatever their line ends.
std::optional<LineDifference> first_difference(std::string_view here, std::string_view there);

}  // namespace jitc::cli
