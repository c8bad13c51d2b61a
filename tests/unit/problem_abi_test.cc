// Problems through the C interface and its C++ operators: what is built, what is refused, and what errors say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <jitc/jitc.hpp>
#include <memory>
#include <string>
#include <vector>

namespace jitc {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Free {
  void operator()(jitc_problem* problem) const { jitc_problem_free(problem); }
};
using Owner = std::unique_ptr<jitc_problem, Free>;

Error error_of(const jitc_problem* problem) {
  jitc_error* error = nullptr;
  const jitc_kind status = jitc_problem_check(problem, &error);
  EXPECT_NE(status, JITC_OK);
  return Error::take(status, error);
}

template <class Body>
Error thrown_by(const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "nothing was thrown";
  return {JITC_OK, ""};
}

jitc_node apply(jitc_problem* problem, const char* op, std::initializer_list<jitc_node> arguments) {
  return jitc_node_apply(problem, op, std::data(arguments), arguments.size());
}

// ---- the builder ----------------------------------------------------------------------------------------------------

class Builder : public ::testing::Test {
 protected:
  Owner owner{jitc_problem_open("flow", 2)};
  jitc_problem* problem = owner.get();
  std::uint32_t u = jitc_problem_field(problem, "u", 2);
};

TEST_F(Builder, EqualExpressionsAreOneNode) {
  const jitc_node x = jitc_node_field(problem, JITC_LEAF_U_X, u, 1, 0);
  EXPECT_EQ(x, jitc_node_leaf(problem, JITC_LEAF_U_X, 2));
  EXPECT_EQ(apply(problem, "add", {x, jitc_node_number(problem, 0.5)}),
            apply(problem, "add", {jitc_node_literal(problem, "0x1p-1"), x}));
  EXPECT_EQ(jitc_node_rational(problem, -1, 3), jitc_node_literal(problem, "-1/3"));
  EXPECT_EQ(jitc_problem_check(problem, nullptr), JITC_OK);
}

TEST_F(Builder, TimesAndPowerAreNeverRegrouped) {
  const jitc_node x = jitc_node_field(problem, JITC_LEAF_U, u, 0, 0);
  const jitc_node y = jitc_node_field(problem, JITC_LEAF_U, u, 1, 0);
  const jitc_node inverse = apply(problem, "div", {jitc_node_number(problem, 1.0), x});
  const jitc_node two = jitc_node_number(problem, 2.0);
  const jitc_node quotient = apply(problem, "div", {y, x});
  EXPECT_EQ(apply(problem, "mul", {inverse, y}), quotient);
  EXPECT_NE(apply(problem, "times", {inverse, y}), quotient);
  EXPECT_EQ(apply(problem, "pow", {x, two}), apply(problem, "mul", {x, x}));
  EXPECT_NE(apply(problem, "power", {x, two}), apply(problem, "mul", {x, x}));
  EXPECT_EQ(jitc_problem_check(problem, nullptr), JITC_OK);
}

TEST_F(Builder, TheFirstErrorStaysAndSaysWhereItHappened) {
  jitc_problem_set(problem, "origin", "momentum.py:12");
  const jitc_node x = jitc_node_field(problem, JITC_LEAF_U, u, 0, 0);
  EXPECT_EQ(jitc_problem_has_failed(problem), 0);
  EXPECT_EQ(apply(problem, "sinc", {x}), JITC_NONE);
  EXPECT_EQ(jitc_problem_has_failed(problem), 1);
  // Everything after it does nothing.
  jitc_problem_set(problem, "origin", "elsewhere");
  EXPECT_EQ(jitc_node_leaf(problem, JITC_LEAF_U, 0), JITC_NONE);
  EXPECT_EQ(jitc_problem_constant(problem, "k", 1), JITC_NONE);
  EXPECT_EQ(apply(problem, "exp", {JITC_NONE}), JITC_NONE);
  const Error error = error_of(problem);
  EXPECT_EQ(error.kind, JITC_USAGE);
  EXPECT_THAT(error.thing, AllOf(HasSubstr("jitc_node_apply"), HasSubstr("sinc"), HasSubstr("'flow'"),
                                 HasSubstr("momentum.py:12"), Not(HasSubstr("elsewhere"))));
  // Each function that gives a status gives this one.
  jitc_text* text = nullptr;
  jitc_error* again = nullptr;
  EXPECT_EQ(jitc_problem_emit(problem, nullptr, &text, &again), JITC_USAGE);
  EXPECT_EQ(Error::take(JITC_USAGE, again).json, error.json);
  EXPECT_EQ(text, nullptr);
  EXPECT_EQ(jitc_problem_manifest(problem, &text, nullptr), JITC_USAGE);
}

TEST_F(Builder, LaterErrorsNameTheNodeAndItsOrigin) {
  const jitc_node x = jitc_node_field(problem, JITC_LEAF_U, u, 0, 0);
  jitc_problem_set(problem, "origin", "momentum.py:12");
  const jitc_node call = jitc_node_call(problem, jitc_problem_function(problem, "law", 1, nullptr), &x, 1);
  jitc_problem_set(problem, "origin", "momentum.py:13");
  const jitc_node entries[] = {x, apply(problem, "exp", {call})};
  jitc_problem_residual(problem, "f0_0", JITC_F0, u, 0, entries, 2);
  jitc_block block = {.size = sizeof block, .name = "g0_0_0", .kind = JITC_G0, .test = u, .trial = u};
  jitc_problem_block(problem, &block);
  ASSERT_EQ(jitc_problem_check(problem, nullptr), JITC_OK);
  jitc_text* text = nullptr;
  jitc_error* error = nullptr;
  EXPECT_EQ(jitc_problem_emit(problem, nullptr, &text, &error), JITC_INVALID_SOURCE);
  EXPECT_EQ(Error::take(JITC_INVALID_SOURCE, error).thing,
            "f0_0[1], node " + std::to_string(call) + " at momentum.py:12");
}

TEST_F(Builder, WrongArgumentsAreRefused) {
  const std::pair<const char*, void (*)(jitc_problem*)> wrong[] = {
      {"takes 1 argument", [](jitc_problem* p) { apply(p, "exp", {}); }},
      {"argument 1 is no node", [](jitc_problem* p) { apply(p, "exp", {1000}); }},
      {"is a condition, not a value", [](jitc_problem* p) { apply(p, "exp", {apply(p, "true", {})}); }},
      {"pairs", [](jitc_problem* p) { apply(p, "piecewise", {apply(p, "true", {})}); }},
      {"no such field", [](jitc_problem* p) { jitc_node_field(p, JITC_LEAF_U, 7, 0, 0); }},
      {"2 components", [](jitc_problem* p) { jitc_node_field(p, JITC_LEAF_U, 0, 2, 0); }},
      {"no such direction", [](jitc_problem* p) { jitc_node_field(p, JITC_LEAF_U_X, 0, 0, 2); }},
      {"belongs to no field", [](jitc_problem* p) { jitc_node_field(p, JITC_LEAF_X, 0, 0, 0); }},
      {"no kind of leaf", [](jitc_problem* p) { jitc_node_leaf(p, static_cast<jitc_leaf>(99), 0); }},
      {"no such constant", [](jitc_problem* p) { jitc_node_leaf(p, JITC_LEAF_CONSTANTS, 0); }},
      {"no such constant", [](jitc_problem* p) { jitc_problem_set_constant(p, 3, 1); }},
      {"denominator is 0", [](jitc_problem* p) { jitc_node_rational(p, 1, 0); }},
      {"not a number", [](jitc_problem* p) { jitc_node_literal(p, "1,5"); }},
      {"no such function", [](jitc_problem* p) { jitc_node_call(p, 0, nullptr, 0); }},
      {"no name", [](jitc_problem* p) { jitc_node_named(p, "", jitc_node_number(p, 1)); }},
      {"none of its values", [](jitc_problem* p) { jitc_problem_residual(p, "f", JITC_G0, 0, 0, nullptr, 0); }},
      {"no node of this problem",
       [](jitc_problem* p) {
         const jitc_node entry = 1000;
         jitc_problem_residual(p, "f", JITC_F0, 0, 0, &entry, 1);
       }},
      {"null pointer", [](jitc_problem* p) { jitc_problem_block(p, nullptr); }},
      {"not a value of this option", [](jitc_problem* p) { jitc_problem_set(p, "ties", "both"); }},
      {"no such option", [](jitc_problem* p) { jitc_problem_set(p, "tie", "half"); }},
      {"not a number", [](jitc_problem* p) { jitc_problem_set(p, "guard", "small"); }},
  };
  for (const auto& [text, build] : wrong) {
    const Owner fresh(jitc_problem_open("flow", 2));
    jitc_problem_field(fresh.get(), "u", 2);
    build(fresh.get());
    const Error error = error_of(fresh.get());
    EXPECT_EQ(error.kind, JITC_USAGE);
    EXPECT_THAT(error.message, HasSubstr(text));
  }
}

TEST_F(Builder, SizesAreCheckedWithTheWholeProblem) {
  const jitc_node entry = jitc_node_number(problem, 1);
  jitc_problem_residual(problem, "f1_0", JITC_F1, u, 0, &entry, 1);
  EXPECT_EQ(jitc_problem_has_failed(problem), 0);
  const Error error = error_of(problem);
  EXPECT_THAT(error.message + error.thing, AllOf(HasSubstr("f1_0"), HasSubstr("4")));
}

TEST_F(Builder, NoProblemIsAnErrorNotACrash) {
  EXPECT_EQ(jitc_node_number(nullptr, 1), JITC_NONE);
  EXPECT_EQ(jitc_problem_check(nullptr, nullptr), JITC_USAGE);
  EXPECT_EQ(jitc_problem_has_failed(nullptr), 1);
  EXPECT_EQ(jitc_problem_constants(nullptr, nullptr, 0), 0U);
  jitc_problem_free(nullptr);
}

TEST_F(Builder, AnOldProgramsBlockIsANewtonBlock) {
  const jitc_node entries[] = {jitc_node_leaf(problem, JITC_LEAF_U, 0), jitc_node_leaf(problem, JITC_LEAF_U, 1)};
  jitc_problem_residual(problem, "f0_0", JITC_F0, u, 0, entries, 2);
  jitc_block block = {};
  block.size = offsetof(jitc_block, entries);
  block.name = "g0_0_0";
  block.kind = JITC_G0;
  block.tangent = static_cast<jitc_tangent>(77);  // beyond what it knows of: not looked at
  jitc_problem_block(problem, &block);
  EXPECT_EQ(jitc_problem_check(problem, nullptr), JITC_OK);
  ASSERT_EQ(jitc_problem_function_count(problem), 2U);
  jitc_function_info info = {};
  info.size = sizeof info;
  ASSERT_EQ(jitc_problem_function_info(problem, 1, &info, nullptr), JITC_OK);
  EXPECT_STREQ(info.name, "g0_0_0");
  EXPECT_EQ(info.kind, JITC_G0);
  EXPECT_EQ(info.entries, 4U);
  ASSERT_EQ(jitc_problem_function_info(problem, 0, &info, nullptr), JITC_OK);
  EXPECT_EQ(info.trial, JITC_NONE);
  EXPECT_EQ(info.entries, 2U);
  EXPECT_EQ(jitc_problem_function_info(problem, 2, &info, nullptr), JITC_USAGE);
}

// ---- C++ operators --------------------------------------------------------------------------------------------------

TEST(Operators, MeanWhatTheyMeanForDoubles) {
  Problem problem("values", 1);
  const Field u = problem.field("u", 2);
  const Expression x = u(0);
  const Expression y = u(1);
  const double a = 0.75;
  const double b = -1.5;
  Expression sum = x;
  sum += y;
  sum *= x;
  sum -= y;
  sum /= x;
  const std::vector<std::pair<Expression, double>> cases = {
      {x + y, a + b},
      {x - 2.0, a - 2},
      {3.0 * y, 3 * b},
      {1.0 / x, 1 / a},
      {-x, -a},
      {+x, a},
      {sum, ((a + b) * a - b) / a},
      {pow(x, y), std::pow(a, b)},
      {pow(x, 2.0), a * a},
      {max(x, y), a},
      {min(x, -2.0), -2},
      {atan2(y, x), std::atan2(b, a)},
      {hypot(x, y), std::hypot(a, b)},
      {fmod(y, x), std::fmod(b, a)},
      {sqrt(x), std::sqrt(a)},
      {cbrt(y), std::cbrt(b)},
      {exp(x), std::exp(a)},
      {log(x), std::log(a)},
      {sin(y), std::sin(b)},
      {tanh(y), std::tanh(b)},
      {erf(x), std::erf(a)},
      {abs(y), 1.5},
      {floor(y), -2},
      {ceil(y), -1},
      {sign(y), -1},
      {heaviside(y - b, 0.25), 0.25},
      {select(x < y, x, y), b},
      {select(x >= 0.75 && !(y > 0.0), 1.0, y), 1},
      {select(x == y || 0.0 != y, x, 7.0), a},
      {problem.rational(1, 3) + problem.number(2), 1.0 / 3 + 2},
  };
  const double values[] = {a, b};
  jitc_point point = {};
  point.u = values;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name = "f" + std::to_string(i);
    problem.residual(name, JITC_F0, u, {cases[i].first, cases[i].first});
    EXPECT_DOUBLE_EQ(problem.evaluate(name, point, 2)[0], cases[i].second) << name;
  }
}

TEST(Operators, ErrorsAreThrownWhereTheyHappen) {
  Problem problem("flow", 2);
  const Field u = problem.field("u", 1);
  const Error error = thrown_by([&] { u.grad(0, 2); });
  EXPECT_EQ(error.kind, JITC_USAGE);
  EXPECT_THAT(error.what(), HasSubstr("no such direction"));
  EXPECT_EQ(thrown_by([&] { u(0); }).json, error.json);
}

// ---- functions, texts, values ---------------------------------------------------------------------------------------

struct Plastic {
  Problem problem{"plastic", 1};
  Field u = problem.field("u", 1);
  Constant c = problem.constant("c", 0.25);
  Plastic() {
    const Expression strain = u.grad(0, 0);
    problem.residual("f1_0", JITC_F1, u, {problem.named("viscosity", 1.0 / (1.0 + strain * strain)) * strain});
  }
  double tangent(const BlockOptions& options) {
    const std::string name = "g" + std::to_string(jitc_problem_function_count(problem.get()));
    problem.block(name, JITC_G3, u, u, options);
    const double strain = 2;
    jitc_point point = {};
    point.u_x = &strain;
    return problem.evaluate(name, point, 1)[0];
  }
};

TEST(Operators, ProblemsDoNotMix) {
  Problem problem("one", 2);
  Problem other("other", 2);
  const Field u = problem.field("u", 1);
  const Field v = other.field("v", 1);
  const Constant k = other.constant("k", 1.0);
  const auto is_refused = [](const auto& call) {
    const Error error = thrown_by(call);
    return error.kind == JITC_USAGE && error.message.find("another problem") != std::string::npos;
  };
  EXPECT_TRUE(is_refused([&] { u(0) + v(0); }));
  EXPECT_TRUE(is_refused([&] { select(v(0) < 1.0, u(0), 2.0); }));
  EXPECT_TRUE(is_refused([&] { problem.named("n", v(0)); }));
  EXPECT_TRUE(is_refused([&] { problem.set_constant(k, 2.0); }));
  EXPECT_TRUE(is_refused([&] { problem.residual("f0_0", JITC_F0, u, {v(0)}); }));
  EXPECT_TRUE(is_refused([&] { problem.residual("f0_0", JITC_F0, v, {u(0)}); }));
  EXPECT_TRUE(is_refused([&] { problem.block("g0_0_0", JITC_G0, u, v); }));
  problem.residual("f0_0", JITC_F0, u, {u(0)});
  EXPECT_NO_THROW(problem.check());  // none of it has harmed the problem
}

TEST(Blocks, NewtonPicardAndBetween) {
  Plastic plastic;
  BlockOptions options;
  const double newton = plastic.tangent(options);
  EXPECT_NEAR(newton, (1.0 - 4.0) / 25.0, 1e-15);
  options.frozen = {"viscosity"};
  EXPECT_EQ(plastic.tangent(options), 0.2);
  options.frozen = {};
  options.tangent = JITC_PICARD;
  const double picard = plastic.tangent(options);
  EXPECT_EQ(picard, 0.2);
  options.tangent = JITC_CONTINUATION;
  options.continuation = plastic.c.index();
  EXPECT_NEAR(plastic.tangent(options), picard + 0.25 * (newton - picard), 1e-15);
  plastic.problem.set_constant(plastic.c, 1.0);
  EXPECT_NEAR(plastic.tangent(options), newton, 1e-15);
  options.tangent = JITC_NEWTON;
  options.entries = {plastic.problem.number(7)};
  EXPECT_EQ(plastic.tangent(options), 7);
}

TEST(Constants, AreValuesInSlotsAndNoPartOfTheText) {
  Problem problem("constants", 1);
  const Field u = problem.field("u", 1);
  const Constant z = problem.constant("z", 1);
  const Constant a = problem.constant("a", 2);
  const Constant other_z = problem.constant("z", 3);
  problem.residual("f0_0", JITC_F0, u, {z + 10.0 * a + 100.0 * other_z});
  EXPECT_THAT(problem.constants(), ElementsAre(1, 2, 3));
  EXPECT_EQ(problem.manifest(), R"([{"slot":0,"name":"z"},{"slot":1,"name":"a"},{"slot":2,"name":"z"}])");
  EXPECT_EQ(problem.evaluate("f0_0", {}, 1)[0], 321);
  const std::string text = problem.emit();
  problem.set_constant(a, 5);
  EXPECT_EQ(problem.emit(), text);
  EXPECT_EQ(problem.evaluate("f0_0", {}, 1)[0], 351);

  problem.set("sort_constants", "1");
  EXPECT_THAT(problem.constants(), ElementsAre(5, 1, 3));
  EXPECT_EQ(problem.manifest(), R"([{"slot":0,"name":"a"},{"slot":1,"name":"z"},{"slot":2,"name":"z"}])");
  EXPECT_EQ(problem.evaluate("f0_0", {}, 1)[0], 351);
  EXPECT_NE(problem.emit(), text);
  const double given[] = {1, 2, 3};
  jitc_point point = {};
  point.constants = given;
  EXPECT_EQ(problem.evaluate("f0_0", point, 1)[0], 312);
}

TEST(Emit, TakesItsOptions) {
  Plastic plastic;
  plastic.problem.block("g3_0_0", JITC_G3, plastic.u, plastic.u);
  plastic.problem.block("g2_0_0", JITC_G2, plastic.u, plastic.u);
  EXPECT_THAT(plastic.problem.emit(),
              AllOf(HasSubstr("typedef int PetscInt;"), HasSubstr("void g3_0_0(PetscInt"), HasSubstr("void g2_0_0(")));
  EmitOptions options;
  options.types = "plain";
  options.prefix = "p_";
  options.skip_zero = true;
  options.table = true;
  EXPECT_THAT(plastic.problem.emit(options),
              AllOf(HasSubstr("p_g3_0_0(int"), HasSubstr("p_table"), HasSubstr("\"g2_0_0\""),
                    Not(HasSubstr("p_g2_0_0")), Not(HasSubstr("PetscInt"))));
  options = {};
  options.layout = JITC_BATCH;
  EXPECT_THAT(plastic.problem.emit(options), AllOf(HasSubstr("void batch("), HasSubstr("points")));
  options.types = "complex";
  EXPECT_EQ(thrown_by([&] { plastic.problem.emit(options); }).thing, "types");
  options = {};
  options.sharing = "yes";
  EXPECT_EQ(thrown_by([&] { plastic.problem.emit(options); }).thing, "sharing");
  options = {};
  options.complex_scalar = true;
  EXPECT_THAT(thrown_by([&] { plastic.problem.emit(options); }).what(), HasSubstr("complex"));
  options = {};
  options.layout = static_cast<jitc_layout>(9);
  EXPECT_EQ(thrown_by([&] { plastic.problem.emit(options); }).thing, "layout");
}

TEST(Evaluate, SaysWhatIsMissing) {
  Plastic plastic;
  EXPECT_THAT(thrown_by([&] { plastic.problem.evaluate("f1_0", {}, 1); }).thing, HasSubstr("u_x"));
  EXPECT_THAT(thrown_by([&] { plastic.problem.evaluate("f1_0", {}, 2); }).message, HasSubstr("1 entries, not 2"));
  EXPECT_EQ(thrown_by([&] { plastic.problem.evaluate("f1_1", {}, 1); }).thing, "f1_1");
  const std::uint32_t law = plastic.problem.declare("law", 1);
  plastic.problem.residual("f0_0", JITC_F0, plastic.u, {plastic.problem.call(law, {plastic.problem.number(1)})});
  EXPECT_THAT(thrown_by([&] { plastic.problem.evaluate("f0_0", {}, 1); }).thing, HasSubstr("law"));
}

TEST(Functions, KnownByNameHaveTheDerivativesThatAreDeclared) {
  Problem problem("opaque", 1);
  const Field u = problem.field("u", 1);
  const std::uint32_t slope = problem.declare("law_slope", 1);
  const std::uint32_t law = problem.declare("law", 1, {slope});
  problem.residual("f0_0", JITC_F0, u, {problem.call(law, {u(0)})});
  problem.block("g0_0_0", JITC_G0, u, u);
  EXPECT_THAT(problem.emit(), AllOf(HasSubstr("double law_slope(double"), HasSubstr("law_slope(petsc_u[0])")));
  problem.residual("f1_0", JITC_F1, u, {problem.call(slope, {u(0)})});
  problem.block("g2_0_0", JITC_G2, u, u);
  const Error error = thrown_by([&] { problem.emit(); });
  EXPECT_THAT(error.what(), HasSubstr("law_slope"));
  EXPECT_THAT(thrown_by([&] { problem.call(law, {u(0), u(0)}); }).message, HasSubstr("takes 1 arguments, not 2"));
}

TEST(Functions, HaveAsManyDerivativesAsArguments) {
  Problem problem("known by name", 2);
  const std::uint32_t f = problem.declare("f", 2);
  EXPECT_EQ(thrown_by([&] { problem.declare("g", 2, {f}); }).kind, JITC_USAGE);
}

TEST(Functions, MayBeTheirOwnDerivatives) {
  Problem problem("opaque", 1);
  const Field u = problem.field("u", 1);
  const std::uint32_t growth = problem.declare("growth", 1);
  EXPECT_EQ(problem.declare("growth", 1, {growth}), growth);
  problem.residual("f0_0", JITC_F0, u, {problem.call(growth, {u(0)})});
  problem.block("g0_0_0", JITC_G0, u, u);
  EXPECT_NO_THROW(problem.emit());
  EXPECT_THAT(thrown_by([&] { problem.declare("growth", 2); }).message, HasSubstr("declared with 1"));
  Problem other("opaque", 1);
  EXPECT_THAT(thrown_by([&] { other.declare("law", 1, {7}); }).message, HasSubstr("no declared function"));
}

TEST(Modules, ThatAreNotThereHaveNothing) {
  const Module none;
  EXPECT_EQ(none.key() + none.manifest(), "");
  EXPECT_EQ(none.origin(), JITC_FROM_MEMORY);
  EXPECT_EQ(jitc_module_table(none.get()), nullptr);
  EXPECT_EQ(thrown_by([&] { none.function<void()>("f0_0"); }).kind, JITC_USAGE);
  EXPECT_EQ(jitc_context_is_broken(nullptr), 0);
  jitc_stats stats = {.size = sizeof(jitc_stats), .calls = 7};
  jitc_context_stats(nullptr, &stats);
  EXPECT_EQ(stats.calls, 0U);
}

TEST(Json, IsReadAndRefusedByName) {
  std::ifstream file(JITC_SOURCE_DIR "/tests/data/corpus/powerlaw_stokes_2d/problem.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const Problem problem = Problem::from_json(text);
  EXPECT_THAT(problem.emit(), AllOf(HasSubstr("void f1_0("), HasSubstr("void g3_0_0(")));
  EXPECT_THAT(problem.constants(), Not(IsEmpty()));
  EXPECT_EQ(thrown_by([] { Problem::from_json("{\"format\": 1}"); }).kind, JITC_INVALID_SOURCE);
}

TEST(Share, GivesTheTextAndAReport) {
  const std::string text =
      "#include <math.h>\n"
      "void f(const double *u, double *out) {\n"
      "  out[0] = exp(u[0] * u[1] + 2.0 * u[0]) * u[0];\n"
      "  out[1] = exp(u[0] * u[1] + 2.0 * u[0]) * u[1];\n"
      "  out[2] = exp(u[0] * u[1] + 2.0 * u[0]) * u[2];\n"
      "}\n"
      "void g(double *out) { for (int i = 0; i < 3; ++i) out[i] = i; }\n";
  jitc_text* shared = nullptr;
  jitc_text* report = nullptr;
  ASSERT_EQ(jitc_share(text.c_str(), text.size(), &shared, &report, nullptr), JITC_OK);
  std::size_t length = 0;
  const std::string made = jitc_text_bytes(shared, &length);
  EXPECT_EQ(made.size(), length);
  EXPECT_EQ(made, share(text));
  EXPECT_EQ(made.find("exp("), made.rfind("exp("));
  EXPECT_THAT(made, HasSubstr("for (int i = 0; i < 3; ++i) out[i] = i;"));
  EXPECT_THAT(jitc_text_bytes(report, nullptr), AllOf(HasSubstr(R"("name":"f","reason":"","shared":true)"),
                                                      HasSubstr(R"("name":"g")"), HasSubstr(R"("shared":false)")));
  jitc_text_free(shared);
  jitc_text_free(report);
  EXPECT_EQ(jitc_share(nullptr, 0, &shared, nullptr, nullptr), JITC_USAGE);
  EXPECT_EQ(shared, nullptr);
}

}  // namespace
}  // namespace jitc
