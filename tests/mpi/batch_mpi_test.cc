// Compiles several modules in one call on all ranks, calls them, and tells what happened. The driver
// (batch_mpi_test.py) runs it over several daemons and judges what it tells.
//
//   batch_mpi_test NUMBER...
//
// Module n has the function answer(x) = n * x; a number below 0 makes a text that does not compile. One line of JSON.
#include <cstdio>
#include <cstdlib>
#include <jitc/mpi.hpp>
#include <string>
#include <vector>

#include "tests/mpi/check.h"

namespace {

jitc::Request request_of(int number) {
  jitc::Request request;
  request.name = "module" + std::to_string(number) + ".c";
  request.source = number < 0 ? "double answer(double x) { return ; + }\n"
                              : "double answer(double x) { return " + std::to_string(number) + " * x; }\n";
  return request;
}

std::string compile(jitc::Context& context, const std::vector<int>& numbers) {
  const std::vector<jitc::Item> items = [&] {
    std::vector<jitc::Item> made;
    for (const int number : numbers) made.emplace_back(request_of(number));
    return made;
  }();
  std::string origins;
  try {
    const std::vector<jitc::Module> modules = context.compile_all(items);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      CHECK_EQ(modules[i].symbol<double(double)>("answer")(2.0), 2.0 * numbers[i]);
      origins += (i ? ", " : "") + std::to_string(modules[i].origin());
    }
    return R"("kind": "OK", "origins": [)" + origins + "]";
  } catch (const jitc::Error& error) {
    return R"("kind": ")" + error.kind_name + R"(", "error": )" + error.json;
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  {
    jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
    std::vector<int> numbers;
    for (int i = 1; i < argc; ++i) numbers.push_back(std::atoi(argv[i]));
    const std::string told = compile(context, numbers);
    const bool is_same = jitc::testing::same_everywhere(told);
    if (jitc::testing::rank_of_world() == 0)
      std::printf("{%s, \"same\": %s, \"compilers_started\": %llu}\n", told.c_str(), is_same ? "true" : "false",
                  static_cast<unsigned long long>(context.stats().compilers_started));
  }
  MPI_Finalize();
  return 0;
}
