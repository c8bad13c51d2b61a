// PETSc's pointwise functions: their parameters, and how leaves are written by them.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "client/graph/emit.h"
#include "common/error.h"

namespace jitc::graph {

struct Parameter {
  enum class Type : std::uint8_t { kInt, kIntArray, kReal, kRealArray, kScalarArray, kOutput };
  Type type;
  std::string_view name;
  bool jacobian_only = false;
  bool boundary_only = false;
};

// In PETSc's order.
inline constexpr auto kParameters = std::to_array<Parameter>({
    {Parameter::Type::kInt, "dim"},
    {Parameter::Type::kInt, "Nf"},
    {Parameter::Type::kInt, "NfAux"},
    {Parameter::Type::kIntArray, "uOff"},
    {Parameter::Type::kIntArray, "uOff_x"},
    {Parameter::Type::kScalarArray, "petsc_u"},
    {Parameter::Type::kScalarArray, "petsc_u_t"},
    {Parameter::Type::kScalarArray, "petsc_u_x"},
    {Parameter::Type::kIntArray, "aOff"},
    {Parameter::Type::kIntArray, "aOff_x"},
    {Parameter::Type::kScalarArray, "petsc_a"},
    {Parameter::Type::kScalarArray, "petsc_a_t"},
    {Parameter::Type::kScalarArray, "petsc_a_x"},
    {Parameter::Type::kReal, "petsc_t"},
    {Parameter::Type::kReal, "petsc_u_tShift", true, false},
    {Parameter::Type::kRealArray, "petsc_x"},
    {Parameter::Type::kRealArray, "petsc_n", false, true},
    {Parameter::Type::kInt, "numConstants"},
    {Parameter::Type::kScalarArray, "constants"},
    {Parameter::Type::kOutput, "out"},
});
using UsedParameters = std::array<bool, kParameters.size()>;
bool has(Signature signature, const Parameter& parameter);

// The types as the text names them, and their definitions (none for Types::kPlain).
struct TypeNames {
  std::string_view integer;
  std::string_view real;
  std::string_view scalar;
};
TypeNames type_names(const EmitOptions& options);
std::string type_definitions(const EmitOptions& options);

// "(PetscInt dim, ...)"
std::string parameter_list(Signature signature, const TypeNames& types);

// How leaves are written.
class LeafSpelling {
 public:
  explicit LeafSpelling(const EmitOptions& options) : options_(options) {}
  // Fails (kUsage) for what the signature does not have. `graph` names the argument in the error.
  common::Result<void> check(const Graph& graph, const Node& leaf, Signature signature) const;
  std::string spell(const Node& leaf) const;
  // Marks the parameters that the leaf is written with.
  void mark(const Node& leaf, UsedParameters& used) const;

 private:
  struct Place {
    std::string_view array;
    std::string_view offsets;                    // empty: indices are flat
    std::span<const std::uint32_t> field_first;  // in components
    std::uint32_t width = 1;                     // values per component
    bool is_scalar = false;
  };
  Place place_of(const Node& leaf) const;

  const EmitOptions& options_;
};

}  // namespace jitc::graph
