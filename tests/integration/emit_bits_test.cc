// Trees, shared and lazy texts of the same graph give the same 64 bits under one compiler and one set of flags, for
// every operator and for every kind of number.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <random>

#include "client/graph/emit.h"
#include "client/graph/evaluate.h"
#include "client/graph/fused.h"
#include "tests/support/compiled_text.h"
#include "tests/support/process.h"
#include "tests/support/random_graph.h"
#include "tests/support/temporary_directory.h"

namespace jitc::graph {
namespace {

using testing::count_differences;
using testing::random_number;
using testing::RandomGraph;

constexpr std::size_t kFunctions = 12;
constexpr std::size_t kOutputs = 5;
constexpr std::size_t kPoints = 5000;
constexpr std::size_t kInputs = 3;  // of each array

std::vector<PointwiseFunction> grow_functions(RandomGraph& random) {
  std::vector<PointwiseFunction> functions;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    PointwiseFunction function{.name = "f" + std::to_string(i), .group = i % 2 == 0 ? "even" : "odd"};
    for (std::size_t k = 0; k < 6; ++k) random.grow();
    for (std::size_t k = 0; k < kOutputs; ++k) function.outputs.push_back(random.grow());
    functions.push_back(std::move(function));
  }
  return functions;
}

// The same functions with sums of three regrouped: what must not happen.
std::vector<PointwiseFunction> reassociate(const Graph& from, std::span<const PointwiseFunction> functions, Graph& to) {
  std::vector<NodeId> copies;
  for (NodeId id = 0; id < from.size(); ++id) {
    std::vector<NodeId> arguments;
    for (const NodeId argument : from.arguments(id)) arguments.push_back(copies[argument]);
    if (from[id].op == Op::kAdd && to[arguments[1]].op == Op::kAdd) std::swap(arguments[0], arguments[1]);
    if (from[id].op == Op::kAdd && to[arguments[0]].op == Op::kAdd) {
      const NodeId a = to.arguments(arguments[0])[0];
      const NodeId b = to.arguments(arguments[0])[1];
      copies.push_back(to.binary(Op::kAdd, a, to.binary(Op::kAdd, b, arguments[1])));
    } else {
      copies.push_back(to.rebuild(from, id, arguments));
    }
  }
  std::vector<PointwiseFunction> changed(functions.begin(), functions.end());
  for (PointwiseFunction& function : changed) {
    for (NodeId& output : function.outputs) output = copies[output];
  }
  return changed;
}

struct Point {
  double u[kInputs], u_x[kInputs], a[kInputs], x[kInputs], constants[kInputs], t[1];
};

std::vector<Point> random_points() {
  std::mt19937_64 random(20);
  std::vector<Point> points(kPoints);
  for (Point& point : points) {
    for (auto* array : {point.u, point.u_x, point.a, point.x, point.constants}) {
      for (std::size_t i = 0; i < kInputs; ++i) array[i] = random_number(random);
    }
    point.t[0] = random_number(random);
  }
  return points;
}

class EmitBits : public testing::CompiledTextTest {
 protected:
  // All functions at all points, through the module's table.
  std::vector<double> values(const std::string& name, const Graph& graph, std::span<const PointwiseFunction> functions,
                             EmitOptions options) const {
    using Residual = void (*)(int, int, int, const int*, const int*, const double*, const double*, const double*,
                              const int*, const int*, const double*, const double*, const double*, double,
                              const double*, int, const double*, double*);
    struct Table {
      int version;
      int groups;
      const int* counts;
      void (*const* functions)();
    };
    options.prefix = name + "_";
    options.table = true;
    const auto text = emit(graph, functions, options);
    EXPECT_TRUE(text.has_value()) << common::to_line(text.error());
    const Library library = compile(name, *text);
    const auto* table = static_cast<const Table*>(::dlsym(library.get(), (name + "_table").c_str()));
    EXPECT_EQ(table->version, 1);
    EXPECT_EQ(table->groups, 2);
    EXPECT_EQ(static_cast<std::size_t>(table->counts[0] + table->counts[1]), functions.size());
    std::vector<double> all;
    const int offsets[] = {0, 1};
    for (std::size_t i = 0; i < functions.size(); ++i) {
      const auto function = reinterpret_cast<Residual>(table->functions[i]);
      for (const Point& point : points_) {
        double out[kOutputs];
        function(2, 2, 2, offsets, offsets, point.u, nullptr, point.u_x, offsets, offsets, point.a, nullptr, nullptr,
                 point.t[0], point.x, kInputs, point.constants, out);
        all.insert(all.end(), out, out + kOutputs);
      }
    }
    return all;
  }

  // The same by one call for all functions of a point.
  std::vector<double> fused_values(const Graph& graph, const PointwiseFunction& all) const {
    using Fused = void (*)(const double*, const double*, const double*, const double*, const double*, const double*,
                           double, double, const double*, const double*, const double*, double*);
    const Library library = compile("fused", *emit_fused(graph, "fused", std::span(&all, 1), {}));
    const auto function = reinterpret_cast<Fused>(::dlsym(library.get(), "fused"));
    std::vector<double> values(all.outputs.size() * kPoints);
    double* out = values.data();
    for (const Point& point : points_) {
      function(point.u, nullptr, point.u_x, point.a, nullptr, nullptr, point.t[0], 0.0, point.x, nullptr,
               point.constants, out);
      out += all.outputs.size();
    }
    return values;
  }

  // The same in one call for all points; t and the constants are those of the first.
  std::vector<double> batch_values(const Graph& graph, const PointwiseFunction& all) const {
    using Batch = void (*)(long, const double*, const double*, const double*, const double*, const double*,
                           const double*, double, double, const double*, const double*, const double*, double*);
    const Library library = compile("batch", *emit_fused(graph, "batch", std::span(&all, 1), {.batch = true}));
    const auto function = reinterpret_cast<Batch>(::dlsym(library.get(), "batch"));
    const auto rows = [&](auto Point::* array) {
      std::vector<double> values;
      for (std::size_t i = 0; i < kInputs; ++i) {
        for (const Point& point : points_) values.push_back((point.*array)[i]);
      }
      return values;
    };
    std::vector<double> by_output(all.outputs.size() * kPoints);
    function(kPoints, rows(&Point::u).data(), nullptr, rows(&Point::u_x).data(), rows(&Point::a).data(), nullptr,
             nullptr, points_[0].t[0], 0.0, rows(&Point::x).data(), nullptr, points_[0].constants, by_output.data());
    std::vector<double> values;
    for (std::size_t p = 0; p < kPoints; ++p) {
      for (std::size_t i = 0; i < all.outputs.size(); ++i) values.push_back(by_output[i * kPoints + p]);
    }
    return values;
  }

  std::vector<Point> points_ = random_points();
};

TEST_P(EmitBits, DoNotDependOnSharing) {
  RandomGraph random(GetParam().native ? 7 : 9);
  const auto functions = grow_functions(random);
  const auto trees = values("trees", random.graph, functions, {.sharing = Sharing::kTrees});
  const auto shared = values("shared", random.graph, functions, {.sharing = Sharing::kShared});
  EXPECT_EQ(count_differences(trees, shared), 0U);
  const auto lazy = values("lazy", random.graph, functions, {.sharing = Sharing::kShared, .lazy_arms = true});
  EXPECT_EQ(count_differences(trees, lazy), 0U);
  EmitOptions moved{.sharing = Sharing::kShared, .int_bits = 32, .runtime_offsets = true};
  moved.field_first = moved.aux_first = {0, 1};
  moved.dim = 1;
  EXPECT_EQ(count_differences(trees, values("moved", random.graph, functions, moved)), 0U);

  // The test can fail.
  Graph changed_graph;
  const auto changed = reassociate(random.graph, functions, changed_graph);
  EXPECT_GT(count_differences(trees, values("changed", changed_graph, changed, {.sharing = Sharing::kTrees})), 0U);
}

TEST_P(EmitBits, DoNotDependOnFusion) {
  RandomGraph random(11);
  PointwiseFunction all{.name = "all"};
  for (std::size_t i = 0; i < kOutputs; ++i) {
    for (std::size_t k = 0; k < 10; ++k) random.grow();
    all.outputs.push_back(random.grow());
  }
  PointwiseFunction other{.name = "other", .outputs = all.outputs, .group = "other"};
  auto alone = values("alone", random.graph, std::vector{all, other}, {.sharing = Sharing::kTrees});
  alone.resize(kPoints * kOutputs);
  EXPECT_EQ(count_differences(alone, fused_values(random.graph, all)), 0U);

  for (Point& point : points_) {
    std::ranges::copy(points_[0].constants, point.constants);
    point.t[0] = points_[0].t[0];
  }
  alone = values("again", random.graph, std::vector{all, other}, {.sharing = Sharing::kTrees});
  alone.resize(kPoints * kOutputs);
  EXPECT_EQ(count_differences(alone, batch_values(random.graph, all)), 0U);
}

// Texts compile where warnings are errors, in plain C99.
TEST(EmitWarnings, ThereAreNone) {
  const testing::TemporaryDirectory directory;
  RandomGraph random(3);
  auto functions = grow_functions(random);
  for (std::size_t i = 0; i < functions.size(); ++i) functions[i].signature = static_cast<Signature>(i % 4);
  const FunctionId opaque = random.graph.declare({.name = "given_elsewhere", .arity = 2});
  const std::vector<NodeId> arguments{random.grow(), random.grow()};
  functions.push_back({.name = "calls", .outputs = {random.graph.call(opaque, arguments), random.graph.number(0.0)}});
  functions.push_back({.name = "constant",
                       .signature = Signature::kBoundaryJacobian,
                       .outputs = {random.graph.number(-1.0 / 0.0), random.graph.number(std::nan(""))}});
  std::vector<std::string> texts;
  for (const auto sharing : {Sharing::kTrees, Sharing::kShared}) {
    texts.push_back(*emit(random.graph, functions, {.sharing = sharing, .table = true}));
    texts.push_back(*emit(random.graph, functions, {.sharing = sharing, .int_bits = 64, .lazy_arms = true}));
    texts.push_back(*emit(random.graph, functions, {.sharing = sharing, .types = Types::kPlain, .int_bits = 64}));
    texts.push_back(*emit_fused(random.graph, "all", functions, {.sharing = sharing}));
    texts.push_back(*emit_fused(random.graph, "all", functions, {.sharing = sharing, .batch = true}));
  }
  texts.push_back(*emit(random.graph, {}, {.table = true}));
  for (const std::string& text : texts) {
    const std::string source = directory.path() + "/text.c";
    std::ofstream(source) << text;
    for (const char* compiler : {"/usr/bin/gcc", "/usr/bin/clang-19"}) {
      const testing::Finished finished = testing::run({compiler, "-Wall", "-Wextra", "-Werror", "-std=c99", "-pedantic",
                                                       "-Wparentheses", "-O1", "-c", "-o", "/dev/null", source});
      EXPECT_EQ(finished.exit_code, 0) << compiler << ": " << finished.err.substr(0, 2000);
    }
  }
}

// gcc 12 takes 0.0 - fabs(x) for -fabs(x), where both stand in one expression: see folds.h. The zeros are those of the
// graph.
TEST_P(EmitBits, OfZeroMinusAbsoluteValuesDoNotDependOnSharing) {
  Graph graph;
  const NodeId x = graph.leaf(kU, 0);
  const NodeId y = graph.leaf(kUx, 1);
  const NodeId zero = graph.number(0.0);
  const NodeId is_less = graph.binary(Op::kLt, x, y);
  const auto of_zero = [&](NodeId value) { return graph.binary(Op::kSub, zero, value); };
  const auto plus_zero = [&](NodeId value) { return graph.binary(Op::kAdd, value, zero); };
  const NodeId size = graph.unary(Op::kAbs, x);
  const NodeId chosen = graph.select(is_less, size, graph.unary(Op::kAbs, y));
  const NodeId truth = graph.select(is_less, graph.number(1.0), zero);
  const NodeId no_zero = graph.select(graph.binary(Op::kLt, graph.number(1.0), zero), y, zero);
  std::vector<PointwiseFunction> functions{{.name = "f0", .group = "even"},
                                           {.name = "f1", .group = "even"},
                                           {.name = "f2", .group = "odd"},
                                           {.name = "f3", .group = "odd"}};
  functions[0].outputs = {of_zero(size), graph.select(is_less, of_zero(size), y), of_zero(chosen),
                          plus_zero(graph.unary(Op::kNeg, size)), of_zero(plus_zero(size))};
  functions[1].outputs = {of_zero(truth), graph.binary(Op::kMul, chosen, truth),
                          graph.binary(Op::kSub, graph.unary(Op::kSin, zero), chosen),
                          graph.binary(Op::kSub, graph.unary(Op::kNeg, size), graph.number(-0.0)),
                          graph.binary(Op::kSub, no_zero, size)};
  // A call may be of fabs; a choice may stand in a sum or a product with a number.
  const FunctionId fabs = graph.declare({.name = "fabs", .arity = 1, .partials = {}});
  const NodeId called = graph.call(fabs, std::array{x});
  const NodeId opposite = graph.unary(Op::kNeg, truth);
  const NodeId never = graph.select(graph.binary(Op::kLt, size, zero), y, zero);
  const NodeId twice = plus_zero(graph.binary(Op::kMul, truth, graph.number(2.0)));
  functions[2].outputs = {of_zero(plus_zero(truth)), of_zero(plus_zero(chosen)), of_zero(called),
                          plus_zero(graph.unary(Op::kNeg, called)), of_zero(graph.select(is_less, called, size))};
  functions[3].outputs = {of_zero(twice), graph.binary(Op::kSub, graph.binary(Op::kAdd, truth, opposite), size),
                          graph.binary(Op::kSub, never, called), graph.binary(Op::kMul, plus_zero(truth), called),
                          graph.binary(Op::kAdd, twice, plus_zero(chosen))};
  for (std::size_t i = 0; i < 4; ++i) points_[i].u[0] = points_[i].u_x[1] = i % 2 == 0 ? 0.0 : -0.0;
  const auto trees = values("trees", graph, functions, {.sharing = Sharing::kTrees});
  EXPECT_EQ(count_differences(trees, values("shared", graph, functions, {.sharing = Sharing::kShared})), 0U);
  EXPECT_EQ(
      count_differences(trees, values("lazy", graph, functions, {.sharing = Sharing::kShared, .lazy_arms = true})), 0U);
  std::vector<double> wanted;
  for (const PointwiseFunction& function : functions)
    for (const Point& point : points_)
      std::ranges::copy(evaluate(
                            graph, function.outputs,
                            [&](const Node& leaf) { return leaf.argument == kU ? point.u[0] : point.u_x[1]; },
                            [](const Function&, std::span<const double> list) { return std::fabs(list[0]); }),
                        std::back_inserter(wanted));
  EXPECT_EQ(count_differences(trees, wanted), 0U);
}

// Sums and differences of products in turn, stored side by side: what gcc 12 contracts into vfmaddsub.
TEST_P(EmitBits, OfAlternatingSumsAreNotContracted) {
  Graph graph;
  std::vector<NodeId> outputs;
  for (std::uint32_t i = 0; i < kOutputs; ++i) {
    const NodeId product = graph.binary(Op::kMul, graph.leaf(kU, i % kInputs), graph.leaf(kA, i / 2));
    outputs.push_back(graph.binary(i % 2 == 0 ? Op::kSub : Op::kAdd, product, graph.leaf(kX, i % kInputs)));
  }
  const PointwiseFunction all{.name = "all", .outputs = outputs};
  const PointwiseFunction other{.name = "other", .outputs = outputs, .group = "other"};
  std::vector<double> wanted;
  for (const Point& point : points_) {
    const auto value = [&](const Node& leaf) {
      return (leaf.argument == kU ? point.u : leaf.argument == kA ? point.a : point.x)[leaf.args[0]];
    };
    std::ranges::copy(evaluate(graph, outputs, value), std::back_inserter(wanted));
  }
  for (const auto sharing : {Sharing::kTrees, Sharing::kShared}) {
    auto alone = values("alone", graph, std::vector{all, other}, {.sharing = sharing});
    alone.resize(wanted.size());
    EXPECT_EQ(count_differences(alone, wanted), 0U);
  }
  EXPECT_EQ(count_differences(fused_values(graph, all), wanted), 0U);
  EXPECT_EQ(count_differences(batch_values(graph, all), wanted), 0U);
}

// C leaves it to the compiler which of two zeros fmax and fmin give, and gcc decides by the text around them: all other
// results agree.
TEST_P(EmitBits, OfTheLibrarysExtremaDoNotDependOnSharing) {
  Graph graph;
  std::vector<PointwiseFunction> functions;
  for (const Op op : {Op::kFmax, Op::kFmin}) {
    const NodeId x = graph.binary(Op::kMul, graph.leaf(kU, 0), graph.leaf(kX, 1));
    const NodeId y = graph.leaf(kUx, 2);
    const NodeId value = graph.binary(op, x, graph.binary(op, y, x));
    functions.push_back({.name = "f" + std::to_string(functions.size()),
                         .outputs = std::vector<NodeId>(kOutputs, value),
                         .group = functions.empty() ? "max" : "min"});
  }
  const auto without_signs_of_zeros = [](std::vector<double> values) {
    for (double& value : values) value = value == 0.0 ? 0.0 : value;
    return values;
  };
  const auto trees = without_signs_of_zeros(values("trees", graph, functions, {.sharing = Sharing::kTrees}));
  const auto shared = without_signs_of_zeros(values("shared", graph, functions, {.sharing = Sharing::kShared}));
  EXPECT_EQ(count_differences(trees, shared), 0U);
}

INSTANTIATE_TEST_SUITE_P(Compilers, EmitBits, testing::all_compiler_settings(),
                         [](const auto& setting) { return testing::name_of(setting); });

}  // namespace
}  // namespace jitc::graph
