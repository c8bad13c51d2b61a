// Not run: that it compiles as C++17 is the test.
#include <jitc/jitc.hpp>

double uses_the_header() {
  jitc::Context context;
  jitc::Request request;
  request.source = "double f(double x) { return x; }";
  const jitc::Module module = context.compile(request);
  return module.symbol<double(double)>("f")(1.0);
}

void* builds_a_problem() {
  jitc::Problem problem("poisson", 2);
  const jitc::Field u = problem.field("u", 1);
  problem.residual("f1_0", JITC_F1, u, {2.0 * u.grad(0, 0), max(u.grad(0, 1), 0.0)});
  problem.block("g3_0_0", JITC_G3, u, u);
  jitc::Context context;
  const jitc::Module module = context.compile(problem);
  return reinterpret_cast<void*>(module.function<void(double*)>("g3_0_0"));
}
