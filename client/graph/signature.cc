#include "client/graph/signature.h"

#include <algorithm>

namespace jitc::graph {
namespace {

using Type = Parameter::Type;

bool is_jacobian(Signature signature) {
  return signature == Signature::kJacobian || signature == Signature::kBoundaryJacobian;
}

bool is_boundary(Signature signature) {
  return signature == Signature::kBoundaryResidual || signature == Signature::kBoundaryJacobian;
}

void append_declaration(std::string& text, const Parameter& parameter, const TypeNames& types) {
  switch (parameter.type) {
    case Type::kInt:
      text.append(types.integer).append(" ");
      break;
    case Type::kIntArray:
      text.append("const ").append(types.integer).append(" *restrict ");
      break;
    case Type::kReal:
      text.append(types.real).append(" ");
      break;
    case Type::kRealArray:
      text.append("const ").append(types.real).append(" *restrict ");
      break;
    case Type::kScalarArray:
      text.append("const ").append(types.scalar).append(" *restrict ");
      break;
    case Type::kOutput:
      text.append(types.scalar).append(" *restrict ");
      break;
  }
  text += parameter.name;
}

}  // namespace

bool has(Signature signature, const Parameter& parameter) {
  return (!parameter.jacobian_only || is_jacobian(signature)) && (!parameter.boundary_only || is_boundary(signature));
}

TypeNames type_names(const EmitOptions& options) {
  if (options.types == Types::kPetsc) return {"PetscInt", "PetscReal", "PetscScalar"};
  return {options.int_bits == 64 ? "long long" : "int", "double", "double"};
}

std::string type_definitions(const EmitOptions& options) {
  if (options.types == Types::kPlain) return {};
  // 64 bits without stdint.h: long long has them wherever PETSc runs.
  return std::string("typedef ") + (options.int_bits == 64 ? "long long" : "int") +
         " PetscInt;\ntypedef double PetscReal;\ntypedef PetscReal PetscScalar;\n\n";
}

std::string parameter_list(Signature signature, const TypeNames& types) {
  std::string text;
  for (const Parameter& parameter : kParameters) {
    if (!has(signature, parameter)) continue;
    text += text.empty() ? "(" : ", ";
    append_declaration(text, parameter, types);
  }
  return text += ')';
}

// ---- leaves -------------------------------------------------------------------------------------------------------

LeafSpelling::Place LeafSpelling::place_of(const Node& leaf) const {
  const auto offsets = [&](std::string_view name) { return options_.runtime_offsets ? name : std::string_view(); };
  switch (leaf.argument) {
    case kU:
      return {"petsc_u", offsets("uOff"), options_.field_first};
    case kUt:
      return {"petsc_u_t", offsets("uOff"), options_.field_first};
    case kUx:
      return {"petsc_u_x", offsets("uOff_x"), options_.field_first, options_.dim};
    case kA:
      return {"petsc_a", offsets("aOff"), options_.aux_first};
    case kAt:
      return {"petsc_a_t", offsets("aOff"), options_.aux_first};
    case kAx:
      return {"petsc_a_x", offsets("aOff_x"), options_.aux_first, options_.dim};
    case kT:
      return {.array = "petsc_t", .is_scalar = true};
    case kUtShift:
      return {.array = "petsc_u_tShift", .is_scalar = true};
    case kX:
      return {.array = "petsc_x"};
    case kN:
      return {.array = "petsc_n"};
    case kConstants:
      return {.array = "constants"};
    default:
      return {};
  }
}

common::Result<void> LeafSpelling::check(const Graph& graph, const Node& leaf, Signature signature) const {
  using common::ErrorKind;
  const std::string argument(graph.argument_name(leaf.argument));
  const Place place = place_of(leaf);
  if (place.array.empty()) {
    return common::fail(ErrorKind::kUsage, "PETSc's pointwise functions have no such argument", argument,
                        "use emit_body for functions with arguments of their own");
  }
  const auto parameter = std::ranges::find(kParameters, place.array, &Parameter::name);
  if (!has(signature, *parameter)) {
    return common::fail(
        ErrorKind::kUsage,
        parameter->boundary_only ? "a function of the volume has no normal"
                                 : "a residual function has no shift of the time derivative",
        argument,
        parameter->boundary_only ? "give the function a boundary signature" : "give the function a Jacobian signature");
  }
  if (!place.offsets.empty() && (place.field_first.empty() || place.field_first.front() * place.width > leaf.args[0])) {
    return common::fail(ErrorKind::kUsage, "no field holds component " + std::to_string(leaf.args[0] / place.width),
                        argument, "offsets at run time need the first component of every field");
  }
  return {};
}

std::string LeafSpelling::spell(const Node& leaf) const {
  const Place place = place_of(leaf);
  std::string text(place.array);
  if (place.is_scalar) return text;
  std::uint32_t index = leaf.args[0];
  text += '[';
  if (!place.offsets.empty()) {
    const auto after = std::ranges::upper_bound(place.field_first, index / place.width);
    const auto field = static_cast<std::size_t>(after - place.field_first.begin()) - 1;
    text.append(place.offsets).append("[").append(std::to_string(field)).append("]");
    index -= place.field_first[field] * place.width;
    if (index > 0) text += " + ";
  }
  if (place.offsets.empty() || index > 0) text += std::to_string(index);
  return text += ']';
}

void LeafSpelling::mark(const Node& leaf, UsedParameters& used) const {
  const Place place = place_of(leaf);
  for (std::size_t i = 0; i < kParameters.size(); ++i) {
    used[i] = used[i] || kParameters[i].name == place.array || kParameters[i].name == place.offsets;
  }
}

}  // namespace jitc::graph
