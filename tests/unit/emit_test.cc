#include "client/graph/emit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <locale>
#include <random>

#include "client/graph/fused.h"
#include "client/graph/literal.h"
#include "tests/support/random_graph.h"

namespace jitc::graph {
namespace {

using common::ErrorKind;
using ::testing::HasSubstr;
using ::testing::Not;

class EmitTest : public ::testing::Test {
 protected:
  static std::string leaf_name(const Node& leaf) {
    static constexpr std::array kNames = {"a", "b", "c", "d"};
    return kNames[leaf.args[0]];
  }
  std::string body(const std::vector<NodeId>& values, BodyOptions options = {}) {
    std::vector<Output> outputs;
    for (const NodeId value : values) outputs.push_back({value, "out[" + std::to_string(outputs.size()) + "]"});
    options.indent = "";
    options.spell = leaf_name;
    const auto text = emit_body(graph, outputs, options);
    return text ? *text : common::to_line(text.error());
  }
  // One expression, without the assignment around it.
  std::string expression(NodeId value) {
    const std::string text = body({value}, {.sharing = Sharing::kTrees});
    return text.substr(9, text.size() - 11);
  }
  NodeId add(NodeId x, NodeId y) { return graph.binary(Op::kAdd, x, y); }
  NodeId sub(NodeId x, NodeId y) { return graph.binary(Op::kSub, x, y); }
  NodeId mul(NodeId x, NodeId y) { return graph.binary(Op::kMul, x, y); }
  NodeId div(NodeId x, NodeId y) { return graph.binary(Op::kDiv, x, y); }
  NodeId neg(NodeId x) { return graph.unary(Op::kNeg, x); }
  NodeId less(NodeId x, NodeId y) { return graph.binary(Op::kLt, x, y); }
  NodeId number(double x) { return graph.number(x); }

  Graph graph;
  NodeId a = graph.leaf(kU, 0);
  NodeId b = graph.leaf(kU, 1);
  NodeId c = graph.leaf(kU, 2);
  NodeId d = graph.leaf(kU, 3);
};

std::string literal(double value) {
  std::string text;
  append_literal(text, value);
  return text;
}

// ---- literals -----------------------------------------------------------------------------------------------------

TEST(Literal, IsTheShortestDecimalOfADouble) {
  EXPECT_EQ(literal(2.0), "2.0");
  EXPECT_EQ(literal(0.0), "0.0");
  EXPECT_EQ(literal(-0.0), "-0.0");
  EXPECT_EQ(literal(0.1), "0.1");
  EXPECT_EQ(literal(1e-18), "1e-18");
  EXPECT_EQ(literal(1e300), "1e+300");
  EXPECT_EQ(literal(1.0 / 3.0), "0.3333333333333333");
  EXPECT_EQ(literal(5e-324), "5e-324");
  EXPECT_EQ(literal(std::numeric_limits<double>::infinity()), "1.0 / 0.0");
  EXPECT_EQ(literal(-std::numeric_limits<double>::infinity()), "-1.0 / 0.0");
  EXPECT_EQ(literal(std::nan("")), "0.0 / 0.0");
}

TEST(Literal, ReadsBackToTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(std::strtod(literal(value).c_str(), nullptr)),
              std::bit_cast<std::uint64_t>(value));
  }
}

// ---- expressions --------------------------------------------------------------------------------------------------

TEST_F(EmitTest, AssociationStaysAsTheGraphSays) {
  EXPECT_EQ(expression(sub(sub(a, b), c)), "a - b - c");
  EXPECT_EQ(expression(sub(a, sub(b, c))), "a - (b - c)");
  EXPECT_EQ(expression(div(div(a, b), c)), "a / b / c");
  EXPECT_EQ(expression(div(a, div(b, c))), "a / (b / c)");
  EXPECT_EQ(expression(div(a, mul(b, b))), "a / (b * b)");
  EXPECT_EQ(expression(mul(sub(a, b), sub(a, b))), "(a - b) * (a - b)");
  EXPECT_EQ(expression(sub(a, div(b, c))), "a - b / c");
  // A sum's arguments are ordered by content: whichever comes first, the inner one keeps its parentheses or its place.
  EXPECT_THAT(expression(add(a, sub(b, c))), ::testing::AnyOf("a + (b - c)", "b - c + a"));
}

TEST_F(EmitTest, NoSignFollowsAnOperator) {
  EXPECT_EQ(expression(neg(a)), "-a");
  EXPECT_EQ(expression(sub(a, neg(b))), "a - (-b)");
  EXPECT_EQ(expression(sub(neg(a), b)), "-a - b");
  EXPECT_EQ(expression(div(neg(a), b)), "(-a) / b");
  EXPECT_EQ(expression(neg(sub(a, b))), "-(a - b)");
  EXPECT_EQ(expression(neg(div(a, b))), "-(a / b)");
  EXPECT_EQ(expression(sub(a, number(-2))), "a - (-2.0)");
  EXPECT_EQ(expression(graph.binary(Op::kPow, a, number(-0.5))), "pow(a, -0.5)");
  EXPECT_EQ(expression(sub(a, number(-std::numeric_limits<double>::infinity()))), "a - (-1.0 / 0.0)");
  EXPECT_EQ(expression(div(a, number(std::numeric_limits<double>::infinity()))), "a / (1.0 / 0.0)");
}

TEST_F(EmitTest, ConditionsAndSelects) {
  const NodeId low = less(a, b);
  const NodeId high = graph.binary(Op::kGe, c, sub(a, d));
  const NodeId both = graph.binary(Op::kAnd, low, high);
  const NodeId either = graph.binary(Op::kOr, both, graph.unary(Op::kNot, low));
  EXPECT_THAT(expression(graph.select(either, a, b)), ::testing::EndsWith(" ? a : b"));
  EXPECT_THAT(expression(graph.select(either, a, b)), HasSubstr("!(a < b)"));
  EXPECT_THAT(expression(graph.select(either, a, b)), HasSubstr("c >= a - d"));
  EXPECT_THAT(expression(graph.select(either, a, b)),
              ::testing::ContainsRegex("\\(.* && .*\\) \\|\\| |\\|\\| \\(.* && .*\\)"));
  EXPECT_EQ(expression(graph.select(low, a, graph.select(graph.truth(true), b, c))), "a < b ? a : 1 ? b : c");
  EXPECT_EQ(expression(graph.select(low, graph.select(low, a, b), c)), "a < b ? (a < b ? a : b) : c");
  EXPECT_EQ(expression(sub(graph.select(low, a, b), c)), "(a < b ? a : b) - c");
}

TEST_F(EmitTest, FunctionsHaveTheirNamesInC) {
  EXPECT_EQ(expression(graph.unary(Op::kAbs, a)), "fabs(a)");
  EXPECT_EQ(expression(graph.unary(Op::kSign, a)), "jitc_sign(a)");
  EXPECT_EQ(expression(graph.binary(Op::kHeaviside, a, number(0.5))), "jitc_heaviside(a, 0.5)");
  EXPECT_EQ(expression(graph.binary(Op::kAtan2, a, b)), "atan2(a, b)");
  EXPECT_EQ(expression(graph.binary(Op::kFmax, a, b)), "fmax(a, b)");
  EXPECT_EQ(expression(graph.extremum(Op::kMax, std::array{a, b, c})), "jitc_max(jitc_max(a, b), c)");
  const FunctionId f = graph.declare({.name = "f", .arity = 3});
  EXPECT_EQ(expression(graph.call(f, std::array{a, neg(b), number(1)})), "f(a, -b, 1.0)");
  EXPECT_EQ(helpers(graph, {}), "");
}

TEST_F(EmitTest, OnlyHelpersInUseAreDefined) {
  const FunctionId z = graph.declare({.name = "z", .arity = 0});
  const FunctionId f = graph.declare({.name = "f", .arity = 2});
  const std::string text = helpers(
      graph, std::array{graph.extremum(Op::kMin, std::array{graph.call(z, {}), graph.call(f, std::array{a, b})})});
  EXPECT_THAT(text,
              ::testing::StartsWith("double f(double, double);\ndouble z(void);\nstatic inline double jitc_min("));
  EXPECT_THAT(text, Not(HasSubstr("jitc_max")));
}

// ---- sharing ------------------------------------------------------------------------------------------------------

TEST_F(EmitTest, WhatIsUsedTwiceIsComputedOnce) {
  const NodeId root = graph.unary(Op::kSqrt, sub(a, b));
  EXPECT_EQ(body({mul(root, root), div(root, c)}),
            "const double t0 = sqrt(a - b);\nout[0] = t0 * t0;\nout[1] = t0 / c;\n");
  EXPECT_EQ(body({mul(root, root)}, {.sharing = Sharing::kTrees}), "out[0] = sqrt(a - b) * sqrt(a - b);\n");
}

TEST_F(EmitTest, LeavesLiteralsSignsAndConditionsAreNoTemporaries) {
  EXPECT_EQ(body({mul(a, a), add(number(3), number(1e300)), sub(number(3), neg(a)), sub(neg(a), b)}),
            "out[0] = a * a;\nout[1] = 1e+300;\nout[2] = 3.0 - (-a);\nout[3] = -a - b;\n");
  // What a repeated condition compares is computed once, the comparison is written again.
  const NodeId condition = less(graph.unary(Op::kExp, a), b);
  EXPECT_EQ(body({graph.select(condition, a, c), graph.select(condition, b, d)}),
            "const double t0 = exp(a);\nout[0] = t0 < b ? a : c;\nout[1] = t0 < b ? b : d;\n");
  const NodeId both = graph.binary(Op::kAnd, less(a, b), less(a, c));
  EXPECT_THAT(body({graph.select(both, a, c), graph.select(both, b, d)}), HasSubstr("const int t0 = a < "));
}

TEST_F(EmitTest, ConditionsThatShareDoNotGrow) {
  NodeId condition = less(a, b);
  for (int i = 0; i < 200; ++i) {
    condition = graph.binary(Op::kOr, graph.binary(Op::kAnd, condition, less(a, number(i))),
                             graph.binary(Op::kAnd, condition, less(b, number(i))));
  }
  EXPECT_LT(body({graph.select(condition, a, b)}).size(), 200U * 120);
}

TEST_F(EmitTest, NamedValuesAreOneTemporaryInEveryMode) {
  const NodeId viscosity = graph.named("viscosity", graph.unary(Op::kExp, a));
  for (const auto sharing : {Sharing::kTrees, Sharing::kShared, Sharing::kAuto}) {
    EXPECT_EQ(body({div(viscosity, b)}, {.sharing = sharing}), "const double t0 = exp(a);\nout[0] = t0 / b;\n");
  }
  EXPECT_EQ(body({div(graph.named("x", a), graph.named("y", number(3)))}), "out[0] = a / 3.0;\n");
}

TEST(EmitNames, DoNotChangeTheText) {
  const auto text = [](const std::vector<std::string>& names, bool other_way) {
    Graph graph;
    const NodeId a = graph.leaf(kU, 0);
    const NodeId b = graph.leaf(kU, 1);
    const NodeId body = graph.unary(Op::kExp, a);
    if (other_way) graph.named(names[1], body);
    const NodeId x = graph.named(names[0], body);
    const NodeId y = graph.named(names[1], body);
    const NodeId product = graph.binary(Op::kMul, graph.binary(Op::kAdd, x, b), graph.binary(Op::kAdd, y, b));
    const NodeId sum = graph.binary(Op::kAdd, other_way ? y : x, other_way ? x : y);
    return *emit_body(graph, std::array{Output{product, "p"}, Output{sum, "q"}},
                      {.spell = [](const Node& leaf) { return "u" + std::to_string(leaf.args[0]); }});
  };
  EXPECT_EQ(text({"one", "two"}, false), text({"zeta", "alpha"}, true));
}

TEST_F(EmitTest, AutoPrintsTreesWhileTheyAreSmall) {
  const NodeId small = sub(a, b);
  EXPECT_EQ(body({mul(small, small)}, {.sharing = Sharing::kAuto}), "out[0] = (a - b) * (a - b);\n");
  NodeId large = small;
  for (int i = 0; i < 6; ++i) large = mul(large, large);
  EXPECT_EQ(body({large}, {.sharing = Sharing::kAuto}), body({large}, {.sharing = Sharing::kShared}));
}

TEST_F(EmitTest, TreesAreBounded) {
  NodeId large = add(a, b);
  for (int i = 0; i < 40; ++i) large = mul(large, large);
  EXPECT_THAT(body({large}, {.sharing = Sharing::kTrees}),
              HasSubstr("as trees the expressions need 12094627905542 bytes of C; at most 67108864 are written"));
  for (int i = 0; i < 1000; ++i) large = mul(large, large);
  EXPECT_THAT(body({large}, {.sharing = Sharing::kTrees}), HasSubstr("need 18446744073709551615 bytes"));
  EXPECT_THAT(body({large}), HasSubstr("const double t1039 = "));
  // A temporary's own tree counts, too. Of 65 levels, it is not too deep for a tree.
  NodeId named = add(a, b);
  for (int i = 0; i < 65; ++i) named = mul(named, named);
  named = graph.named("viscosity", named);
  EXPECT_THAT(body({named}, {.sharing = Sharing::kTrees}), HasSubstr("need 18446744073709551615 bytes"));
  EXPECT_EQ(body({named}, {.sharing = Sharing::kAuto}), body({named}, {.sharing = Sharing::kShared}));
}

// ---- depth --------------------------------------------------------------------------------------------------------

std::size_t deepest_bracket(const std::string& text) {
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char c : text) {
    if (c == '(' || c == '{') deepest = std::max(deepest, ++depth);
    if (c == ')' || c == '}') --depth;
  }
  return deepest;
}

TEST_F(EmitTest, DeepChainsAreCut) {
  constexpr int kDepth = 1000000;
  NodeId sum = a;
  NodeId nest = a;
  for (int i = 0; i < kDepth; ++i) {
    sum = sub(sum, b);
    nest = graph.unary(Op::kSin, nest);
  }
  for (const auto sharing : {Sharing::kShared, Sharing::kAuto}) {
    const std::string text = body({sum, nest}, {.sharing = sharing});
    EXPECT_LT(deepest_bracket(text), 200U);
    EXPECT_EQ(std::ranges::count(text, '-'), kDepth);
  }
  EXPECT_EQ(deepest_bracket(body({nest}, {.sharing = Sharing::kTrees})), kDepth);
}

TEST_F(EmitTest, LongMaximaAreComputedStepByStep) {
  std::vector<NodeId> list;
  for (int i = 0; i < 1000; ++i) list.push_back(graph.leaf(kUx, i));
  const NodeId largest = graph.extremum(Op::kMax, list);
  const auto text = emit_body(graph, std::array{Output{largest, "out"}},
                              {.spell = [](const Node& leaf) { return "x[" + std::to_string(leaf.args[0]) + "]"; }});
  EXPECT_THAT(*text, ::testing::StartsWith("  double t0 = x[0];\n  t0 = jitc_max(t0, x[1]);\n"));
  EXPECT_EQ(deepest_bracket(*text), 1U);
}

TEST_F(EmitTest, DeepSelectsAreCutToo) {
  NodeId value = a;
  for (int i = 0; i < 100000; ++i) {
    const NodeId next = graph.unary(Op::kSin, value);
    value = graph.select(less(a, number(i)), mul(next, next), b);
  }
  for (const bool lazy : {false, true}) {
    const std::string text = body({value}, {.lazy_arms = lazy});
    EXPECT_LT(deepest_bracket(text), 200U);
    EXPECT_LT(text.size(), 50'000'000U);
  }
}

// ---- lazy arms ----------------------------------------------------------------------------------------------------

TEST_F(EmitTest, LazyArmsKeepWhatOnlyTheyNeed) {
  const NodeId both = graph.unary(Op::kCos, a);
  const NodeId one = graph.unary(Op::kLog, add(both, a));
  const NodeId value = graph.select(less(a, b), mul(one, one), graph.unary(Op::kSqrt, b));
  EXPECT_THAT(body({value, both}, {.lazy_arms = true}),
              ::testing::MatchesRegex("const double t0 = cos\\(a\\);\n"
                                      "double t2;\n"
                                      "if \\(a < b\\) \\{\n"
                                      "const double t1 = log\\((t0 \\+ a|a \\+ t0)\\);\n"
                                      "t2 = t1 \\* t1;\n"
                                      "\\} else \\{\n"
                                      "t2 = sqrt\\(b\\);\n"
                                      "\\}\n"
                                      "out\\[0\\] = t2;\n"
                                      "out\\[1\\] = t0;\n"));
  EXPECT_THAT(body({value, both}), Not(HasSubstr("if (")));
  // Without temporaries in its arms a select stays an expression: C itself computes one arm only.
  EXPECT_EQ(body({graph.select(less(a, b), graph.unary(Op::kLog, a), b)}, {.lazy_arms = true}),
            "out[0] = a < b ? log(a) : b;\n");
}

TEST_F(EmitTest, LazyArmsNest) {
  const NodeId inner = graph.unary(Op::kLog, a);
  const NodeId outer = graph.unary(Op::kExp, b);
  const NodeId nested = graph.select(less(a, b), mul(inner, inner), outer);
  const NodeId value = graph.select(less(c, d), sub(nested, outer), c);
  EXPECT_EQ(body({value}, {.lazy_arms = true}),
            "double t3;\n"
            "if (c < d) {\n"
            "const double t1 = exp(b);\n"
            "double t2;\n"
            "if (a < b) {\n"
            "const double t0 = log(a);\n"
            "t2 = t0 * t0;\n"
            "} else {\n"
            "t2 = t1;\n"
            "}\n"
            "t3 = t2 - t1;\n"
            "} else {\n"
            "t3 = c;\n"
            "}\n"
            "out[0] = t3;\n");
}

// ---- determinism --------------------------------------------------------------------------------------------------

// The functions in another graph, built in another order among other nodes.
std::vector<PointwiseFunction> rebuilt(const Graph& from, std::vector<PointwiseFunction> functions, Graph& to,
                                       std::uint64_t seed) {
  std::mt19937_64 random(seed);
  to.argument("somewhere_else");
  std::vector<NodeId> copies(from.size(), ~NodeId{0});
  std::vector<NodeId> wanted;
  for (const PointwiseFunction& function : functions) {
    wanted.insert(wanted.end(), function.outputs.begin(), function.outputs.end());
  }
  std::ranges::shuffle(wanted, random);
  while (!wanted.empty()) {
    const NodeId id = wanted.back();
    std::vector<NodeId> arguments;
    bool is_ready = true;
    for (const NodeId argument : from.arguments(id)) {
      if (copies[argument] == ~NodeId{0}) {
        wanted.push_back(argument);
        is_ready = false;
      } else {
        arguments.push_back(copies[argument]);
      }
    }
    if (!is_ready) continue;
    wanted.pop_back();
    if (random() % 3 == 0) to.unary(Op::kSin, to.number(static_cast<double>(random() % 1000)));
    copies[id] = to.rebuild(from, id, arguments);
  }
  for (PointwiseFunction& function : functions) {
    for (NodeId& output : function.outputs) output = copies[output];
  }
  return functions;
}

std::vector<PointwiseFunction> random_functions(testing::RandomGraph& random) {
  std::vector<PointwiseFunction> functions;
  for (int i = 0; i < 10; ++i) {
    PointwiseFunction function{.name = "f" + std::to_string(i), .group = std::to_string(i % 3)};
    for (int k = 0; k < 20; ++k) function.outputs.push_back(random.grow());
    functions.push_back(std::move(function));
  }
  return functions;
}

TEST(EmitDeterminism, TheTextDoesNotDependOnTheOrderOfBuilding) {
  for (const std::uint64_t seed : {1, 2, 3, 4, 5}) {
    testing::RandomGraph random(seed);
    const auto functions = random_functions(random);
    Graph other;
    const auto same = rebuilt(random.graph, functions, other, seed);
    for (const auto sharing : {Sharing::kTrees, Sharing::kShared, Sharing::kAuto}) {
      for (const bool lazy : {false, true}) {
        const EmitOptions options{.sharing = sharing, .lazy_arms = lazy, .table = true};
        EXPECT_EQ(*emit(random.graph, functions, options), *emit(other, same, options));
      }
    }
    EXPECT_EQ(*emit_fused(random.graph, "all", functions, {}), *emit_fused(other, "all", same, {}));
  }
}

struct DecimalComma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(EmitDeterminism, TheTextDoesNotDependOnTheLocale) {
  testing::RandomGraph random(9);
  const auto functions = random_functions(random);
  const std::string before = *emit(random.graph, functions, {});
  const std::locale old = std::locale::global(std::locale(std::locale::classic(), new DecimalComma));
  const std::string after = *emit(random.graph, functions, {});
  std::locale::global(old);
  EXPECT_EQ(before, after);
}

// ---- functions and modules ----------------------------------------------------------------------------------------

class ModuleTest : public EmitTest {
 protected:
  std::string text(const std::vector<PointwiseFunction>& functions, const EmitOptions& options = {}) {
    const auto emitted = emit(graph, functions, options);
    return emitted ? *emitted : common::to_line(emitted.error());
  }
  static PointwiseFunction function(NodeId value, Signature signature = Signature::kResidual) {
    return {.name = "f", .signature = signature, .outputs = {value}};
  }
};

TEST_F(ModuleTest, SignaturesArePetscs) {
  EXPECT_EQ(
      text({function(add(graph.leaf(kConstants, 4), graph.leaf(kT)))}),
      std::string(kContractionGuard) +
          "#include <math.h>\n\ntypedef int PetscInt;\ntypedef double PetscReal;\ntypedef PetscReal PetscScalar;\n\n"
          "void f(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt *restrict uOff, "
          "const PetscInt *restrict uOff_x, const PetscScalar *restrict petsc_u, "
          "const PetscScalar *restrict petsc_u_t, const PetscScalar *restrict petsc_u_x, "
          "const PetscInt *restrict aOff, const PetscInt *restrict aOff_x, const PetscScalar *restrict petsc_a, "
          "const PetscScalar *restrict petsc_a_t, const PetscScalar *restrict petsc_a_x, PetscReal petsc_t, "
          "const PetscReal *restrict petsc_x, PetscInt numConstants, const PetscScalar *restrict constants, "
          "PetscScalar *restrict out) {\n"
          "  (void)dim; (void)Nf; (void)NfAux; (void)uOff; (void)uOff_x; (void)petsc_u; (void)petsc_u_t; "
          "(void)petsc_u_x; (void)aOff; (void)aOff_x; (void)petsc_a; (void)petsc_a_t; (void)petsc_a_x; "
          "(void)petsc_x; (void)numConstants;\n"
          "  out[0] = " +
          std::string(graph.arguments(add(graph.leaf(kConstants, 4), graph.leaf(kT)))[0] == graph.leaf(kT)
                          ? "petsc_t + constants[4]"
                          : "constants[4] + petsc_t") +
          ";\n}\n\n");
  const std::string shift = "PetscReal petsc_t, PetscReal petsc_u_tShift, const PetscReal *restrict petsc_x, ";
  const std::string normal =
      "const PetscReal *restrict petsc_x, const PetscReal *restrict petsc_n, PetscInt numConstants";
  EXPECT_THAT(text({function(a, Signature::kJacobian)}), HasSubstr(shift + "PetscInt numConstants"));
  EXPECT_THAT(text({function(a, Signature::kBoundaryResidual)}), HasSubstr("PetscReal petsc_t, " + normal));
  EXPECT_THAT(text({function(a, Signature::kBoundaryJacobian)}), HasSubstr("PetscReal petsc_u_tShift, " + normal));
}

TEST_F(ModuleTest, TypesAreChosen) {
  EXPECT_THAT(text({function(a)}, {.int_bits = 64}), HasSubstr("typedef long long PetscInt;"));
  const std::string plain = text({function(a)}, {.types = Types::kPlain});
  EXPECT_THAT(plain, Not(HasSubstr("Petsc")));
  EXPECT_THAT(plain, HasSubstr("void f(int dim, int Nf, int NfAux, const int *restrict uOff"));
  EXPECT_THAT(text({function(a)}, {.types = Types::kPlain, .int_bits = 64}), HasSubstr("void f(long long dim"));
}

TEST_F(ModuleTest, AFullGraphIsNotPrinted) {
  Graph full(2);
  NodeId value = full.leaf(kU);
  for (int i = 0; i < 3; ++i) value = full.unary(Op::kSin, value);
  const std::vector<PointwiseFunction> functions = {{"f0", Signature::kResidual, {value}, ""}};
  EXPECT_THAT(emit(full, functions, {}).error().message, HasSubstr("full at 2 nodes"));
  EXPECT_THAT(emit_fused(full, "all", functions, {}).error().message, HasSubstr("full at 2 nodes"));
  EXPECT_THAT(emit_body(full, std::vector<Output>{{value, "y"}}, {}).error().message, HasSubstr("full at 2 nodes"));
}

TEST_F(ModuleTest, WhatCannotBeHadIsRefused) {
  EXPECT_EQ(emit(graph, {}, {.complex_scalar = true}).error().kind, ErrorKind::kUsage);
  EXPECT_THAT(text({}, {.complex_scalar = true}), HasSubstr("PetscScalar is complex"));
  EXPECT_THAT(text({}, {.int_bits = 16}), HasSubstr("32 or 64 bits, not 16"));
  EXPECT_THAT(text({function(graph.leaf(kN, 0))}), HasSubstr("f: n: a function of the volume has no normal"));
  EXPECT_THAT(text({function(graph.leaf(kUtShift))}), HasSubstr("f: u_tShift: a residual function has no shift"));
  EXPECT_THAT(text({function(graph.leaf(graph.argument("strain"), 0))}), HasSubstr("f: strain: PETSc's"));
  EXPECT_THAT(text({function(a), function(b)}), HasSubstr("twice"));
  for (const char* name : {"while", "sin", "jitc_max", "1st", "", "\xc3\xa9"}) {
    EXPECT_FALSE(emit(graph, std::array{PointwiseFunction{.name = name, .outputs = {a}}}, {}).has_value()) << name;
  }
  EXPECT_FALSE(emit(graph, std::array{PointwiseFunction{.name = "max", .outputs = {a}}}, {.prefix = "jitc_"}));
  for (const char* name : {"t0", "out", "f", "jitc_min", "PetscInt", "if"}) {
    const FunctionId opaque = graph.declare({.name = name, .arity = 1});
    EXPECT_FALSE(emit(graph, std::array{function(graph.call(opaque, std::array{a}))}, {}).has_value()) << name;
  }
  NodeId large = graph.unary(Op::kSin, a);
  for (int i = 0; i < 30; ++i) large = mul(large, large);
  EXPECT_THAT(text({function(large)}, {.sharing = Sharing::kTrees}), HasSubstr("f: as trees"));
}

TEST_F(ModuleTest, OffsetsAreReadAtRunTimeWhenAsked) {
  const std::vector<NodeId> outputs{graph.leaf(kU, 0),  graph.leaf(kU, 2), graph.leaf(kUx, 1),
                                    graph.leaf(kUx, 5), graph.leaf(kA, 1), graph.leaf(kAx, 7)};
  const std::vector<PointwiseFunction> functions{{.name = "f", .outputs = outputs}};
  EXPECT_THAT(text(functions), HasSubstr("out[3] = petsc_u_x[5];"));
  const EmitOptions options{.runtime_offsets = true, .field_first = {0, 2}, .aux_first = {0, 1, 3}, .dim = 2};
  const std::string moved = text(functions, options);
  for (const char* line :
       {"out[0] = petsc_u[uOff[0]];", "out[1] = petsc_u[uOff[1]];", "out[2] = petsc_u_x[uOff_x[0] + 1];",
        "out[3] = petsc_u_x[uOff_x[1] + 1];", "out[4] = petsc_a[aOff[1]];", "out[5] = petsc_a_x[aOff_x[2] + 1];"}) {
    EXPECT_THAT(moved, HasSubstr(line));
  }
  EXPECT_THAT(moved, Not(HasSubstr("(void)uOff;")));
  EXPECT_THAT(text(functions, {.runtime_offsets = true}), HasSubstr("u: no field holds component 0"));
}

TEST_F(ModuleTest, TheTableHoldsGroupsInOrder) {
  const std::vector<PointwiseFunction> functions{
      {.name = "f0", .outputs = {a}, .group = "residual"},
      {.name = "g0", .signature = Signature::kJacobian, .outputs = {number(0), number(-0.0)}, .group = "jacobian"},
      {.name = "f1", .outputs = {b}, .group = "residual"}};
  const std::string module = text(functions, {.prefix = "k12_", .skip_zero = true, .table = true});
  EXPECT_THAT(module, HasSubstr("static const int k12_counts[] = {2, 1};\n"
                                "static void (*const k12_functions[])(void) = {\n"
                                "    (void (*)(void))k12_f0,\n"
                                "    (void (*)(void))k12_f1,\n"
                                "    0,\n"
                                "};\n"
                                "static const char *const k12_names[] = {\n"
                                "    \"f0\",\n"
                                "    \"f1\",\n"
                                "    \"g0\",\n"
                                "};\n"));
  EXPECT_THAT(module, HasSubstr("} k12_table = {1, 2, k12_counts, k12_functions, k12_names};\n"));
  EXPECT_THAT(module, Not(HasSubstr("k12_g0")));
  const std::string all = text(functions, {.prefix = "k12_"});
  EXPECT_THAT(all, HasSubstr("out[0] = 0.0;\n  out[1] = -0.0;\n"));
  EXPECT_THAT(all, Not(HasSubstr("table")));
  EXPECT_THAT(text({{.name = "table", .outputs = {a}}}, {.table = true}), HasSubstr("table: the text has this name"));
}

TEST_F(ModuleTest, StatisticsCountAllFunctions) {
  const NodeId root = graph.unary(Op::kSqrt, sub(a, b));
  const std::vector<PointwiseFunction> functions{{.name = "f", .outputs = {mul(root, root)}},
                                                 {.name = "g", .outputs = {mul(root, root), root}}};
  EmitStatistics statistics;
  ASSERT_TRUE(emit(graph, functions, {.sharing = Sharing::kShared}, &statistics).has_value());
  EXPECT_EQ(statistics.nodes, 5U);
  EXPECT_EQ(statistics.temporaries, 2U);
  EXPECT_EQ(statistics.tree_nodes, 9U + 9U + 4U);
}

// ---- all functions of a point as one ------------------------------------------------------------------------------

TEST_F(ModuleTest, FusionSharesAcrossFunctions) {
  const NodeId root = graph.unary(Op::kSqrt, sub(a, graph.leaf(graph.argument("strain"), 3)));
  const std::vector<PointwiseFunction> functions{{.name = "f0", .outputs = {root, graph.leaf(kT)}},
                                                 {.name = "g0", .outputs = {div(root, graph.leaf(kConstants, 1))}}};
  EXPECT_EQ(
      *emit_fused(graph, "all", functions, {}),
      std::string(kContractionGuard) +
          "#include <math.h>\n\n"
          "void all(const double *restrict u, const double *restrict u_t, const double *restrict u_x, "
          "const double *restrict a, const double *restrict a_t, const double *restrict a_x, double t, "
          "double u_tShift, const double *restrict x, const double *restrict n, const double *restrict constants, "
          "const double *restrict strain, double *restrict out_f0, double *restrict out_g0) {\n"
          "  (void)u_t; (void)u_x; (void)a; (void)a_t; (void)a_x; (void)u_tShift; (void)x; (void)n;\n"
          "  const double t0 = sqrt(u[0] - strain[3]);\n"
          "  out_f0[0] = t0;\n"
          "  out_f0[1] = t;\n"
          "  out_g0[0] = t0 / constants[1];\n"
          "}\n");
  const std::string batch = *emit_fused(graph, "all", functions, {.batch = true});
  EXPECT_THAT(batch, HasSubstr("void all(long points, const double *restrict u,"));
  EXPECT_THAT(batch, HasSubstr("  for (long p = 0; p < points; ++p) {\n"
                               "    const double t0 = sqrt(u[p] - strain[3 * points + p]);\n"
                               "    out_f0[p] = t0;\n"
                               "    out_f0[points + p] = t;\n"
                               "    out_g0[p] = t0 / constants[1];\n"
                               "  }\n"));
  EXPECT_FALSE(emit_fused(graph, "sin", functions, {}).has_value());
  const std::vector<PointwiseFunction> same{functions[0], functions[0]};
  EXPECT_EQ(emit_fused(graph, "all", same, {}).error().thing, "out_f0");
  const PointwiseFunction hidden{.name = "h", .outputs = {graph.leaf(graph.argument("t7"), 0)}};
  EXPECT_EQ(emit_fused(graph, "all", std::array{hidden}, {}).error().thing, "t7");
}

}  // namespace
}  // namespace jitc::graph
