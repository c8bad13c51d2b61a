// Problems over the public interface, on all ranks against a real daemon: the key is taken before differentiation, the
// root alone differentiates and prints, constants' values compile nothing, and ranks that differ hear in which
// function.
//
//   problem_mpi_test cold | stored      whether the daemon or the store is expected to serve the first call
#include <cstring>
#include <jitc/mpi.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/mpi/check.h"

namespace {

using jitc::testing::rank_of_world;
using jitc::testing::same_everywhere;

// Signatures of PETSc, with its types.
using Residual = void(int, int, int, const int*, const int*, const double*, const double*, const double*, const int*,
                      const int*, const double*, const double*, const double*, double, const double*, int,
                      const double*, double*);
using Jacobian = void(int, int, int, const int*, const int*, const double*, const double*, const double*, const int*,
                      const int*, const double*, const double*, const double*, double, double, const double*, int,
                      const double*, double*);

struct Variant {
  double k = 2.0;          // value of the constant
  double factor = 3.0;     // in the text
  std::string name = "k";  // of the constant
};

// Diffusion with a conductivity that depends on the unknown; g0 is identically zero.
jitc::Problem diffusion(const Variant& variant = {}) {
  jitc::Problem problem("diffusion", 2);
  const jitc::Field u = problem.field("u", 1);
  const jitc::Constant k = problem.constant(variant.name, variant.k);
  const jitc::Expression conductivity = problem.named("conductivity", k * (1.0 + u(0) * u(0)));
  problem.residual("f0_0", JITC_F0, u, {problem.x(0) * problem.x(1)});
  problem.residual("f1_0", JITC_F1, u,
                   {variant.factor * conductivity * u.grad(0, 0), variant.factor * conductivity * u.grad(0, 1)});
  problem.block("g0_0_0", JITC_G0, u, u);
  problem.block("g2_0_0", JITC_G2, u, u);
  problem.block("g3_0_0", JITC_G3, u, u);
  jitc::BlockOptions picard;
  picard.tangent = JITC_PICARD;
  problem.block("picard_g2_0_0", JITC_G2, u, u, picard);
  return problem;
}

const double kU[] = {0.5};
const double kUx[] = {0.25, -2.0};
const double kX[] = {0.125, 4.0};

std::vector<double> call_g2(const jitc::Module& module, const std::vector<double>& constants) {
  std::vector<double> out(2);
  auto* g2 = module.function<Jacobian>("g2_0_0");
  CHECK(g2 != nullptr);
  g2(2, 1, 0, nullptr, nullptr, kU, nullptr, kUx, nullptr, nullptr, nullptr, nullptr, nullptr, 0.0, 0.0, kX,
     static_cast<int>(constants.size()), constants.data(), out.data());
  return out;
}

void expect_right_values(const jitc::Module& module, const jitc::Problem& problem) {
  jitc_point point = {};
  point.u = kU;
  point.u_x = kUx;
  point.x = kX;
  CHECK(call_g2(module, problem.constants()) == problem.evaluate("g2_0_0", point, 2));
  double f0 = 0;
  module.function<Residual>("f0_0")(2, 1, 0, nullptr, nullptr, kU, nullptr, kUx, nullptr, nullptr, nullptr, nullptr,
                                    nullptr, 0.0, kX, 1, problem.constants().data(), &f0);
  CHECK_EQ(f0, 0.5);
}

void compile_and_call(jitc::Context& context, bool is_cold) {
  jitc::Problem problem = diffusion();
  CHECK(same_everywhere(problem.emit()));
  const jitc::Module module = context.compile(problem);
  CHECK_EQ(module.origin(), is_cold ? JITC_COMPILED : JITC_FROM_STORE);
  CHECK_EQ(context.stats().compilers_started, is_cold ? 1U : 0U);
  CHECK_EQ(context.stats().codes_made, is_cold ? 1U : 0U);
  CHECK(same_everywhere(module.key()));
  CHECK_EQ(module.manifest(), problem.manifest());
  expect_right_values(module, problem);

  // Identically zero blocks are no functions, but known ones.
  CHECK(module.function<Jacobian>("g0_0_0") == nullptr);
  CHECK(module.function<Jacobian>("picard_g2_0_0") == nullptr);
  const jitc_table* table = jitc_module_table(module.get());
  CHECK_EQ(table->version, 1);
  CHECK_EQ(table->groups, 2);
  CHECK_EQ(table->counts[0], 2);
  CHECK_EQ(table->counts[1], 4);
  CHECK_EQ(std::string(table->names[1]), "f1_0");
  try {
    module.function<Residual>("f2_0");
    CHECK(false);
  } catch (const jitc::Error& error) {
    CHECK_EQ(error.kind, JITC_USAGE);
  }

  // Another value: the same module, without a derivative, a text or a compiler.
  jitc::Problem other = diffusion({.k = 5.0});
  const jitc::Module same = context.compile(other);
  CHECK_EQ(same.origin(), JITC_FROM_MEMORY);
  CHECK_EQ(context.stats().compilers_started, is_cold ? 1U : 0U);
  CHECK_EQ(context.stats().codes_made, is_cold ? 1U : 0U);
  expect_right_values(same, other);

  // What is added after a compile belongs to the next one.
  const jitc::Field w = problem.field("w", 1);
  problem.residual("f0_1", JITC_F0, w, {w(0)});
  const jitc::Module larger = context.compile(problem);
  CHECK_EQ(larger.origin(), is_cold ? JITC_COMPILED : JITC_FROM_STORE);
  CHECK(larger.key() != module.key());
  CHECK(larger.function<Residual>("f0_1") != nullptr);
  CHECK(call_g2(same, other.constants()) != call_g2(module, problem.constants()));
}

void compile_fused(jitc::Context& context) {
  using Fused =
      void(const double*, const double*, const double*, const double*, const double*, const double*, double, double,
           const double*, const double*, const double*, double*, double*, double*, double*, double*, double*);
  jitc::Problem problem = diffusion();
  jitc::EmitOptions options;
  options.layout = JITC_FUSED;
  const jitc::Module module = context.compile(problem, options);
  CHECK(jitc_module_table(module.get()) == nullptr);
  double f0[1], f1[2], g0[1], g2[2], g3[4], picard[2];
  module.function<Fused>("fused")(kU, nullptr, kUx, nullptr, nullptr, nullptr, 0.0, 0.0, kX, nullptr,
                                  problem.constants().data(), f0, f1, g0, g2, g3, picard);
  jitc_point point = {};
  point.u = kU;
  point.u_x = kUx;
  point.x = kX;
  CHECK(std::vector<double>(g2, g2 + 2) == problem.evaluate("g2_0_0", point, 2));
  CHECK(std::vector<double>(g3, g3 + 4) == problem.evaluate("g3_0_0", point, 4));
  CHECK_EQ(g0[0], 0.0);
}

// The error of a call that must fail, with the same text on all ranks.
jitc::Error failure_of(jitc::Context& context, jitc::Problem& problem) {
  try {
    context.compile(problem);
  } catch (const jitc::Error& error) {
    CHECK(same_everywhere(error.json));
    return error;
  }
  CHECK(false);
  return {JITC_INTERNAL, ""};
}

void fail_alike(jitc::Context& context) {
  const int odd = jitc::testing::size_of_world() - 1;
  const bool is_odd = rank_of_world() == odd;
  jitc::Problem other_factor = diffusion({.factor = is_odd ? 3.5 : 4.0});
  const jitc::Error text = failure_of(context, other_factor);
  CHECK_EQ(text.kind, JITC_DIVERGENT);
  CHECK(text.ranks == std::vector<int>{odd});
  CHECK(text.message.find("f1_0") != std::string::npos);

  jitc::Problem other_name = diffusion({.name = is_odd ? "kappa" : "k"});
  const jitc::Error layout = failure_of(context, other_name);
  CHECK_EQ(layout.kind, JITC_DIVERGENT);
  CHECK(layout.message.find("manifest") != std::string::npos);

  // A derivative that nobody knows is met on the root alone.
  jitc::Problem opaque("opaque", 2);
  const jitc::Field u = opaque.field("u", 1);
  opaque.residual("f0_0", JITC_F0, u, {opaque.call(opaque.declare("law", 1), {u(0)})});
  opaque.block("g0_0_0", JITC_G0, u, u);
  const jitc::Error derivative = failure_of(context, opaque);
  CHECK((derivative.message + derivative.thing).find("law") != std::string::npos);

  // What is wrong with one rank's problem is everybody's failure.
  jitc::Problem wrong = diffusion();
  if (is_odd) {
    const jitc::Field w = wrong.field("w", 1);
    wrong.residual("f1_1", JITC_F1, w, {w(0)});
  }
  const jitc::Error entries = failure_of(context, wrong);
  CHECK(entries.ranks == std::vector<int>{odd});
  CHECK((entries.message + entries.thing).find("f1_1") != std::string::npos);

  jitc::Problem good = diffusion();
  context.compile(good);
}

void adopt_the_roots() {
  jitc::Options options;
  options.settings = {{"divergent", "adopt"}};
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD), options);
  jitc::Problem problem = diffusion({.factor = 7.0 + rank_of_world()});
  const jitc::Module module = context.compile(problem);
  CHECK(same_everywhere(module.key()));
  jitc::Problem root = diffusion({.factor = 7.0});
  expect_right_values(module, root);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  CHECK_EQ(argc, 2);
  {
    jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
    compile_and_call(context, std::strcmp(argv[1], "cold") == 0);
    compile_fused(context);
    fail_alike(context);
    adopt_the_roots();
  }
  MPI_Finalize();
  return 0;
}
