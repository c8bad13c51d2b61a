#include "client/graph/problem.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <locale>
#include <string>

#include "client/graph/emit.h"
#include "client/graph/evaluate.h"

namespace jitc::graph {
namespace {

// A nonlinear conduction problem: f0 = k u^2, f1[d] = eta * m * u_x[d], eta = sqrt(u_x[0]) named "eta".
Problem conduction() {
  Problem problem;
  problem.name = "conduction";
  problem.fields = {{"T", 1, 0}};
  problem.constants = {{"k", 1.0}, {"m", 2.0}};
  Graph& graph = problem.graph;
  const NodeId u = graph.leaf(kU);
  const NodeId k = graph.leaf(kConstants, 0);
  const NodeId m = graph.leaf(kConstants, 1);
  const NodeId eta = graph.named("eta", graph.unary(Op::kSqrt, graph.leaf(kUx, 0)));
  problem.residuals.push_back({"f0_0", Kind::kF0, 0, false, {graph.binary(Op::kMul, k, graph.binary(Op::kMul, u, u))}});
  Residual flux{"f1_0", Kind::kF1, 0, false, {}};
  for (std::uint32_t d = 0; d < 2; ++d)
    flux.entries.push_back(graph.binary(Op::kMul, graph.binary(Op::kMul, eta, m), graph.leaf(kUx, d)));
  problem.residuals.push_back(flux);
  problem.blocks.push_back({.name = "g0_0_0", .kind = Kind::kG0});
  problem.blocks.push_back({.name = "g3_0_0", .kind = Kind::kG3});
  return problem;
}

// u = 3, u_x = (4, 5), constants k = 7, m = 11 by label, others 0.25.
std::vector<double> values(const Problem& problem, const std::vector<NodeId>& outputs) {
  return evaluate(problem.graph, outputs, [&](const Node& node) {
    if (node.argument == kU) return 3.0;
    if (node.argument == kUx) return 4.0 + node.args[0];
    if (node.argument != kConstants) return 0.25;
    const std::string& label = problem.constants[node.args[0]].name;
    return label == "k" ? 7.0 : label == "m" ? 11.0 : 0.25;
  });
}

std::vector<double> values_of(Problem& problem, const std::string& function) {
  const auto lowered = lower(problem);
  EXPECT_TRUE(lowered) << common::to_line(lowered.error());
  if (!lowered) return {};
  const auto found = std::ranges::find(*lowered, function, &PointwiseFunction::name);
  EXPECT_NE(found, lowered->end()) << function;
  return found == lowered->end() ? std::vector<double>{} : values(problem, found->outputs);
}

std::string text_of(Problem problem) {
  const auto lowered = lower(problem);
  EXPECT_TRUE(lowered) << common::to_line(lowered.error());
  const auto text = emit(problem.graph, *lowered, {.sharing = Sharing::kShared});
  EXPECT_TRUE(text);
  return text.value_or("");
}

std::string fault(const Problem& problem) {
  const auto checked = check(problem);
  return checked ? "fine" : common::to_line(checked.error());
}

void expect_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-12 * std::fabs(wanted[i])) << i;
}

// d(eta m L_d)/dL_e at L = (4, 5): eta = 2, deta/dL_0 = 1/4.
const std::vector<double> kNewtonFlux{2 * 11 + 4 * 11 / 4.0, 0.0, 5 * 11 / 4.0, 2 * 11};
const std::vector<double> kPicardFlux{2 * 11, 0.0, 0.0, 2 * 11};

TEST(Problem, DifferentiatesByComponentsAndGradients) {
  Problem problem = conduction();
  expect_near(values_of(problem, "g0_0_0"), {2 * 7 * 3.0});
  expect_near(values_of(problem, "g3_0_0"), kNewtonFlux);
}

TEST(Problem, TangentsFreezeNamedExpressions) {
  Problem problem = conduction();
  problem.blocks = {{.name = "picard", .kind = Kind::kG3, .tangent = Tangent::kPicard},
                    {.name = "frozen", .kind = Kind::kG3, .frozen = {"eta"}},
                    {.name = "newton", .kind = Kind::kG3},
                    {.name = "ramp", .kind = Kind::kG3, .tangent = Tangent::kContinuation, .continuation = 2}};
  problem.constants.push_back({"alpha", 0.0});
  expect_near(values_of(problem, "picard"), kPicardFlux);
  expect_near(values_of(problem, "frozen"), kPicardFlux);
  expect_near(values_of(problem, "newton"), kNewtonFlux);
  std::vector<double> between;
  for (std::size_t i = 0; i < 4; ++i) between.push_back(kPicardFlux[i] + 0.25 * (kNewtonFlux[i] - kPicardFlux[i]));
  expect_near(values_of(problem, "ramp"), between);
}

TEST(Problem, GuardsNewtonTangentsOnly) {
  Problem problem = conduction();
  problem.guard = 5.0;  // sqrt(4 + 5) = 3: large enough to be seen
  problem.blocks.push_back({.name = "picard", .kind = Kind::kG3, .tangent = Tangent::kPicard});
  expect_near(values_of(problem, "f1_0"), {2 * 11 * 4.0, 2 * 11 * 5.0});
  expect_near(values_of(problem, "picard"), kPicardFlux);
  expect_near(values_of(problem, "g3_0_0"), {3 * 11 + 4 * 11 / 6.0, 0.0, 5 * 11 / 6.0, 3 * 11});
}

TEST(Problem, GivenEntriesAreNotDifferentiated) {
  Problem problem = conduction();
  const NodeId inverse = problem.graph.binary(Op::kDiv, problem.graph.number(1.0), problem.graph.leaf(kUtShift));
  problem.blocks = {{.name = "mass", .kind = Kind::kG0, .entries = {inverse}}};
  expect_near(values_of(problem, "mass"), {4.0});
}

TEST(Problem, BlocksOfAsymmetricFieldsHaveTheirLayout) {
  // Velocity (2 components at 1) and pressure (at 0): f1 of the velocity is A[fc,df] * p + B[fc,df,gc,dg] L[gc,dg],
  // with numbers that tell all slots apart.
  Problem problem;
  problem.fields = {{"p", 1, 0}, {"v", 2, 1}};
  Graph& graph = problem.graph;
  Residual flux{"f1_1", Kind::kF1, 1, false, {}};
  for (std::uint32_t row = 0; row < 4; ++row) {
    NodeId sum = graph.binary(Op::kMul, graph.number(100.0 + row), graph.leaf(kU, 0));
    for (std::uint32_t column = 0; column < 4; ++column)
      sum = graph.binary(Op::kAdd, sum,
                         graph.binary(Op::kMul, graph.number(10.0 * row + column + 3.0), graph.leaf(kUx, 2 + column)));
    flux.entries.push_back(sum);
  }
  problem.residuals = {flux};
  problem.blocks = {{.name = "vp", .kind = Kind::kG2, .test = 1, .trial = 0},
                    {.name = "vv", .kind = Kind::kG3, .test = 1, .trial = 1}};
  expect_near(values_of(problem, "vp"), {100, 101, 102, 103});  // [fc,gc=0,df]
  std::vector<double> wanted;
  for (int fc = 0; fc < 2; ++fc)
    for (int gc = 0; gc < 2; ++gc)
      for (int df = 0; df < 2; ++df)
        for (int dg = 0; dg < 2; ++dg) wanted.push_back(10.0 * (2 * fc + df) + (2 * gc + dg) + 3.0);
  expect_near(values_of(problem, "vv"), wanted);
}

TEST(Problem, BoundaryFunctionsHaveSignaturesOfTheirOwn) {
  Problem problem = conduction();
  const NodeId flow = problem.graph.binary(Op::kMul, problem.graph.leaf(kN, 1), problem.graph.leaf(kU));
  problem.residuals.push_back({"fb_0", Kind::kF0, 0, true, {flow}});
  problem.blocks.push_back({.name = "gb_0_0", .kind = Kind::kG0, .boundary = true});
  expect_near(values_of(problem, "gb_0_0"), {0.25});
  expect_near(values_of(problem, "g0_0_0"), {2 * 7 * 3.0});
  const auto lowered = lower(problem);
  ASSERT_TRUE(lowered);
  std::vector<Signature> signatures;
  for (const auto& function : *lowered) signatures.push_back(function.signature);
  EXPECT_EQ(signatures, (std::vector{Signature::kResidual, Signature::kResidual, Signature::kBoundaryResidual,
                                     Signature::kJacobian, Signature::kJacobian, Signature::kBoundaryJacobian}));
}

TEST(Problem, TiesFollowTheProblem) {
  Problem problem = conduction();
  Graph& graph = problem.graph;
  const std::array<NodeId, 2> tied{graph.leaf(kU), graph.number(3.0)};
  problem.residuals[0].entries = {graph.extremum(Op::kMax, tied)};
  Problem first = problem;
  first.ties = Ties::kFirst;
  expect_near(values_of(problem, "g0_0_0"), {0.5});
  expect_near(values_of(first, "g0_0_0"), {1.0});
}

class Comma : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(Problem, TheLocaleDoesNotShow) {
  const auto all = [] {
    Problem problem = conduction();
    problem.guard = 1234567.25;
    problem.constants.resize(1500);
    return text_of(problem) + canonical_bytes(problem) + constants_manifest(problem);
  };
  const std::string plain = all();
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const std::string with_commas = all();
  std::locale::global(before);
  EXPECT_EQ(with_commas, plain);
}

// ---- constants ------------------------------------------------------------------------------------------------------

TEST(Problem, ConstantsAreSortedByNameAndCreation) {
  Problem problem = conduction();
  problem.constants = {{"m", 0}, {"eta", 1}, {"eta", 2}, {"b", 3}};
  EXPECT_EQ(constant_slots(problem), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  problem.sort_constants = true;
  EXPECT_EQ(constant_slots(problem), (std::vector<std::uint32_t>{3, 1, 2, 0}));
  EXPECT_EQ(constants_manifest(problem),
            R"([{"slot":0,"name":"b"},{"slot":1,"name":"eta"},{"slot":2,"name":"eta"},{"slot":3,"name":"m"}])");
  problem.constants = {{"a\"\\\n", 0}};
  EXPECT_EQ(constants_manifest(problem), R"([{"slot":0,"name":"a\"\\\u000a"}])");
}

// The conduction problem with its constants created in the other order.
Problem swapped() {
  Problem problem = conduction();
  std::swap(problem.constants[0], problem.constants[1]);
  Graph& graph = problem.graph;
  const NodeId u = graph.leaf(kU);
  problem.residuals[0].entries = {graph.binary(Op::kMul, graph.leaf(kConstants, 1), graph.binary(Op::kMul, u, u))};
  const NodeId eta = graph.named("eta", graph.unary(Op::kSqrt, graph.leaf(kUx, 0)));
  for (std::uint32_t d = 0; d < 2; ++d)
    problem.residuals[1].entries[d] =
        graph.binary(Op::kMul, graph.binary(Op::kMul, eta, graph.leaf(kConstants, 0)), graph.leaf(kUx, d));
  return problem;
}

TEST(Problem, SortedConstantsMakeTheSourceIndependentOfCreation) {
  Problem one = conduction();
  Problem other = swapped();
  EXPECT_NE(canonical_bytes(one), canonical_bytes(other));
  EXPECT_NE(text_of(one), text_of(other));
  one.sort_constants = other.sort_constants = true;
  EXPECT_EQ(canonical_bytes(one), canonical_bytes(other));
  EXPECT_EQ(text_of(one), text_of(other));
  expect_near(values_of(other, "g3_0_0"), kNewtonFlux);
  expect_near(values_of(other, "g3_0_0"), kNewtonFlux);  // lowering again changes nothing
  EXPECT_EQ(other.constants[0].name, "k");
}

TEST(Problem, ContinuationFollowsItsConstantIntoItsSlot) {
  Problem problem = conduction();
  problem.constants.push_back({"alpha", 0.0});
  problem.sort_constants = true;
  problem.blocks = {{.name = "ramp", .kind = Kind::kG3, .tangent = Tangent::kContinuation, .continuation = 2}};
  std::vector<double> between;
  for (std::size_t i = 0; i < 4; ++i) between.push_back(kPicardFlux[i] + 0.25 * (kNewtonFlux[i] - kPicardFlux[i]));
  expect_near(values_of(problem, "ramp"), between);
  EXPECT_EQ(problem.constants[problem.blocks[0].continuation].name, "alpha");
}

TEST(Problem, SortingKeepsPartialDerivatives) {
  Problem problem = conduction();
  problem.constants = {{"z", 0}, {"a", 0}};
  problem.sort_constants = true;
  Graph& graph = problem.graph;
  const FunctionId slope = graph.declare({"slope", 1, {}});
  const FunctionId law = graph.declare({"law", 1, {slope}});
  const std::array<NodeId, 1> u{graph.leaf(kU)};
  problem.residuals[0].entries = {graph.call(law, u)};
  EXPECT_NE(text_of(problem).find("slope("), std::string::npos);
}

// ---- the bytes of the key -------------------------------------------------------------------------------------------

TEST(CanonicalBytes, IgnoreLabelsIdsAndOrderOfBuilding) {
  const std::string bytes = canonical_bytes(conduction());
  Problem renamed = conduction();
  renamed.name = "another";
  renamed.fields[0].name = "temperature";
  renamed.constants = {{"conductivity", 3.0}, {"exponent", 4.0}};
  EXPECT_EQ(canonical_bytes(renamed), bytes);

  // The same expressions after others, arguments of products turned round, another name of eta.
  Problem rebuilt = conduction();
  rebuilt.graph = Graph();
  Graph& graph = rebuilt.graph;
  graph.unary(Op::kSin, graph.leaf(kX, 1));
  const NodeId eta = graph.named("viscosity", graph.unary(Op::kSqrt, graph.leaf(kUx, 0)));
  for (std::uint32_t d = 2; d-- > 0;)
    rebuilt.residuals[1].entries[d] =
        graph.binary(Op::kMul, graph.leaf(kUx, d), graph.binary(Op::kMul, graph.leaf(kConstants, 1), eta));
  const NodeId u = graph.leaf(kU);
  rebuilt.residuals[0].entries = {graph.binary(Op::kMul, graph.binary(Op::kMul, u, u), graph.leaf(kConstants, 0))};
  EXPECT_EQ(canonical_bytes(rebuilt), bytes);
  EXPECT_EQ(text_of(rebuilt), text_of(conduction()));
}

TEST(CanonicalBytes, DependOnAllThatTheTextDependsOn) {
  using Change = std::function<void(Problem&)>;
  const std::vector<Change> changes{
      [](Problem& p) { p.dim = 3; },
      [](Problem& p) { p.ties = Ties::kFirst; },
      [](Problem& p) { p.guard = 1e-36; },
      [](Problem& p) { p.fields[0].first = 1; },
      [](Problem& p) { p.aux_fields = {{"history", 1, 0}}; },
      [](Problem& p) { p.residuals[0].name = "other"; },
      [](Problem& p) { p.residuals[0].boundary = true; },
      [](Problem& p) { p.residuals[0].entries[0] = p.graph.number(1.0); },
      [](Problem& p) { std::swap(p.residuals[1].entries[0], p.residuals[1].entries[1]); },
      [](Problem& p) { p.blocks[0].name = "other"; },
      [](Problem& p) { p.blocks[0].kind = Kind::kG1; },
      [](Problem& p) { p.blocks[0].entries = {p.graph.number(1.0)}; },
      [](Problem& p) { p.blocks[1].tangent = Tangent::kPicard; },
      [](Problem& p) { p.blocks[1].tangent = Tangent::kContinuation; },
      [](Problem& p) { p.blocks[1].tangent = Tangent::kContinuation, p.blocks[1].continuation = 1; },
      [](Problem& p) { p.blocks[1].frozen = {"eta"}; },
      [](Problem& p) { p.blocks.pop_back(); },
  };
  std::vector<std::string> all{canonical_bytes(conduction())};
  for (const Change& change : changes) {
    Problem problem = conduction();
    change(problem);
    all.push_back(canonical_bytes(problem));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " " << j;
}

TEST(CanonicalBytes, NamesMatterWhereBlocksFreezeThem) {
  const auto two_names = [](const std::string& first, const std::string& second, const std::string& frozen) {
    Problem problem = conduction();
    Graph& graph = problem.graph;
    const NodeId a = graph.named(first, graph.unary(Op::kExp, graph.leaf(kU)));
    const NodeId b = graph.named(second, graph.unary(Op::kSin, graph.leaf(kU)));
    problem.residuals[0].entries = {graph.binary(Op::kMul, a, b)};
    problem.blocks[0].frozen = {frozen};
    return canonical_bytes(problem);
  };
  EXPECT_EQ(two_names("a", "b", "a"), two_names("b", "a", "b"));
  EXPECT_NE(two_names("a", "b", "a"), two_names("a", "b", "b"));
}

// ---- what is refused ------------------------------------------------------------------------------------------------

TEST(Problem, SaysWhichDerivativeDoesNotExist) {
  Problem problem = conduction();
  Graph& graph = problem.graph;
  const std::array<NodeId, 1> u{graph.leaf(kUx, 1)};
  const NodeId call = graph.call(graph.declare({"law", 1, {}}), u);
  problem.residuals[1].entries[1] = call;
  const auto lowered = lower(problem);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().kind, common::ErrorKind::kInvalidSource);
  EXPECT_EQ(lowered.error().thing, "f1_0[1], node " + std::to_string(call));
  EXPECT_NE(lowered.error().message.find("law"), std::string::npos);
}

// conduction() with a flux that has no derivative where blocks are guarded and constants are sorted: what is
// differentiated is then a copy of a copy of the node that was built at "flux.py:7".
TEST(Problem, ErrorsNameTheNodeThatWasBuiltAndItsOrigin) {
  Problem problem = conduction();
  problem.constants = {{"z", 1.0}, {"a", 2.0}};
  problem.sort_constants = true;
  problem.guard = 1e-36;
  Graph& graph = problem.graph;
  const auto size = [&graph] { return static_cast<NodeId>(graph.size()); };
  graph.leaf(kX, 1);  // not needed: it has no copy
  problem.origins.begin(size(), "before");
  const std::array<NodeId, 1> root{graph.unary(Op::kSqrt, graph.leaf(kUx, 1))};
  problem.origins.begin(size(), "flux.py:7");
  const NodeId call = graph.call(graph.declare({"law", 1, {}}), root);
  problem.origins.begin(size(), "behind");
  problem.residuals[1].entries[1] = graph.binary(Op::kMul, call, graph.leaf(kConstants, 1));
  const std::string named = "f1_0[1], node " + std::to_string(call) + " at flux.py:7";
  const auto lowered = lower(problem);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().thing, named);

  Problem outside = conduction();
  outside.origins.begin(static_cast<NodeId>(outside.graph.size()), "flow.py:3");
  const NodeId leaf = outside.graph.leaf(kU, 1);
  outside.residuals[0].entries = {outside.graph.unary(Op::kExp, leaf)};
  EXPECT_NE(fault(outside).find("f0_0[0], node " + std::to_string(leaf) + " at flow.py:3: element 1 of 'u'"),
            std::string::npos)
      << fault(outside);
}

TEST(Problem, RefusesWhatDoesNotFitItsLayout) {
  EXPECT_EQ(fault(conduction()), "fine");
  const auto changed = [](const std::function<void(Problem&)>& change) {
    Problem problem = conduction();
    change(problem);
    return fault(problem);
  };
  using testing::AssertionResult;
  const auto has = [](const std::string& line, std::string_view part) -> AssertionResult {
    return line.find(part) != std::string::npos ? testing::AssertionSuccess() : testing::AssertionFailure() << line;
  };
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[1].entries.pop_back(); }), "f1_0: has 1 entries"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[1].entries[1] = 1'000'000; }), "f1_0[1]: is no node"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].entries = {p.graph.truth(true)}; }), ": is a condition"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].entries = {p.graph.leaf(kU, 1)}; }), "element 1 of 'u'"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].entries = {p.graph.leaf(kConstants, 2)}; }), "'constants'"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].entries = {p.graph.leaf(p.graph.argument("q"))}; }), "'q'"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].field = 1; }), "no field 1"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals[0].kind = Kind::kG0; }), "f0_0"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.residuals.push_back(p.residuals[0]), p.residuals.back().name = "again"; }),
                  "g0_0_0: 'f0_0' and 'again'"));
  EXPECT_TRUE(has(changed([](Problem& p) { p.guard = std::nan(""); }), "guard"));
  EXPECT_TRUE(has(changed([](Problem& p) {
                    const std::array<NodeId, 1> u{p.graph.leaf(kU)};
                    p.residuals[0].entries = {p.graph.call(p.graph.declare({"law", 2, {}}), u)};
                  }),
                  "takes 2 arguments, not 1"));
  EXPECT_TRUE(has(changed([](Problem& p) {
                    const NodeId u = p.graph.leaf(kU);
                    p.residuals[0].entries = {p.graph.select(u, u, u)};
                  }),
                  "is a value, not a condition"));
}

}  // namespace
}  // namespace jitc::graph
