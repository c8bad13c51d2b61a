#include "client/examples/stokes/pointwise.h"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <type_traits>

namespace jitc::stokes {
namespace {

// The source prints its own typedefs, so that compute nodes need no PETSc headers; they must be this PETSc's.
static_assert(std::is_same_v<PetscInt, int> && std::is_same_v<PetscReal, double> && std::is_same_v<PetscScalar, double>,
              "powerlaw_stokes_2d.c is printed for a PETSc with 32-bit integers and real double scalars");

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(file && text << file.rdbuf())) throw std::runtime_error("cannot read " + path + ": give its place by -source");
  return std::move(text).str();
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
  function = module.symbol<std::remove_pointer_t<Pointer>>(name);
}

}  // namespace

Compiled compile_pointwise(jitc::Context& context, const std::string& path) {
  jitc::Request request;
  request.name = "powerlaw_stokes_2d.c";
  request.make_source = [&path] { return read_text(path); };
  request.abi_tag = abi_tag();
  request.manifest = "eta0 n e_min Ra";  // the slots of `constants`, as PowerLaw has them

  const std::uint64_t before = context.stats().compilers_started;
  Compiled compiled;
  compiled.module = context.compile(request);
  bind(compiled.module, "f1_0", compiled.functions.f1_0);
  bind(compiled.module, "f0_1", compiled.functions.f0_1);
  bind(compiled.module, "g3_0_0", compiled.functions.g3_0_0);
  bind(compiled.module, "g2_0_1", compiled.functions.g2_0_1);
  bind(compiled.module, "g1_1_0", compiled.functions.g1_1_0);
  const jitc_stats stats = context.stats();
  compiled.seconds = stats.last_seconds;
  compiled.compilers_started = stats.compilers_started - before;
  return compiled;
}

}  // namespace jitc::stokes
