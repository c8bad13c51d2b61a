#include "client/examples/stokes/pointwise.h"

#include <sstream>
#include <type_traits>

#include "client/examples/stokes/equations.h"

namespace jitc::stokes {
namespace {

// The source prints its own typedefs, so that compute nodes need no PETSc headers; they must be this PETSc's.
jitc::EmitOptions petsc_types() {
  jitc::EmitOptions options;
  options.int_bits = 8 * sizeof(PetscInt);
  static_assert(std::is_same_v<PetscReal, double> && std::is_same_v<PetscScalar, double>,
                "the example is written for a PETSc with real double scalars");
  return options;
}

// What decides the binary interface besides the text: part of the key.
std::string abi_tag() {
  std::ostringstream tag;
  tag << "PETSc " << PETSC_VERSION_MAJOR << '.' << PETSC_VERSION_MINOR << '.' << PETSC_VERSION_SUBMINOR << ", int "
      << sizeof(PetscInt) << ", scalar " << sizeof(PetscScalar) << ", real " << sizeof(PetscReal);
  return tag.str();
}

template <class Pointer>
void bind(const jitc::Module& module, const char* name, Pointer& function) {
  function = module.function<std::remove_pointer_t<Pointer>>(name);
}

}  // namespace

Compiled compile_pointwise(jitc::Context& context, Law law, jitc_tangent tangent) {
  jitc::Problem problem = equations(law, tangent);
  jitc::Request request;
  request.abi_tag = abi_tag();

  const std::uint64_t before = context.stats().compilers_started;
  Compiled compiled;
  compiled.module = context.compile(problem, petsc_types(), request);
  bind(compiled.module, "f1_0", compiled.functions.f1_0);
  bind(compiled.module, "f0_1", compiled.functions.f0_1);
  bind(compiled.module, "g3_0_0", compiled.functions.g3_0_0);
  bind(compiled.module, "g2_0_1", compiled.functions.g2_0_1);
  bind(compiled.module, "g1_1_0", compiled.functions.g1_1_0);
  compiled.functions.f0_0 = force_of(law);
  const jitc_stats stats = context.stats();
  compiled.seconds = stats.last_seconds;
  compiled.compilers_started = stats.compilers_started - before;
  return compiled;
}

}  // namespace jitc::stokes
