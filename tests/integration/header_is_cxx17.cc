// Not run: that it compiles as C++17 is the test.
#include <jitc/jitc.hpp>

double uses_the_header() {
  jitc::Context context;
  jitc::Request request;
  request.source = "double f(double x) { return x; }";
  const jitc::Module module = context.compile(request);
  return module.symbol<double(double)>("f")(1.0);
}
