// Problems in C++17: expressions with operators over the C interface of <jitc/problem.h>, where layouts and meanings
// are stated. Part of <jitc/jitc.hpp>. Failures are exceptions of type jitc::Error, thrown where they happen.
//
//   jitc::Problem problem("poisson", 2);
//   const jitc::Field u = problem.field("u", 1);
//   const jitc::Constant k = problem.constant("k", 1.5);
//   problem.residual("f1_0", JITC_F1, u, {k * u.grad(0, 0), k * u.grad(0, 1)});
//   problem.block("g3_0_0", JITC_G3, u, u);
//   jitc::Module module = context.compile(problem);                                       // collective
//   auto g3 = module.function<std::remove_pointer_t<PetscPointJac>>("g3_0_0");            // nullptr: identically zero
//
// Expressions, conditions and fields belong to their problem and must not outlive it; another problem refuses them.
#ifndef JITC_PROBLEM_HPP
#define JITC_PROBLEM_HPP

#include <jitc/jitc.h>

#include <cstdint>
#include <initializer_list>
#include <jitc/error.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace jitc {

namespace detail {

[[noreturn]] inline void throw_first_error(const jitc_problem* problem) {
  jitc_error* error = nullptr;
  const jitc_kind status = jitc_problem_check(problem, &error);
  throw Error::take(status == JITC_OK ? JITC_INTERNAL : status, error);
}

// A node, index or nothing, as the building functions give it.
inline std::uint32_t checked(const jitc_problem* problem, std::uint32_t made) {
  if (made == JITC_NONE) throw_first_error(problem);
  return made;
}

// The nodes of one problem know nothing of another's.
inline void require_same(const jitc_problem* wanted, const jitc_problem* given) {
  if (given != wanted) throw Error(JITC_USAGE, "an expression, condition or field of another problem was given");
}

// Calls a function that gives a status, and throws its error.
template <class Call>
void attempt(const Call& call) {
  jitc_error* error = nullptr;
  const jitc_kind status = call(&error);
  if (status != JITC_OK) throw Error::take(status, error);
}

inline std::string take(jitc_text* text) {
  const std::unique_ptr<jitc_text, void (*)(jitc_text*)> owner(text, jitc_text_free);
  std::size_t length = 0;
  const char* bytes = jitc_text_bytes(text, &length);
  return std::string(bytes, length);
}

inline const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace detail

// A node of a problem, whose kind is known to the compiler: values and conditions do not mix.
class Node {
 public:
  // `node` of `problem`; throws the problem's first error where there is none.
  Node(jitc_problem* problem, jitc_node node) : problem_(problem), node_(detail::checked(problem, node)) {}
  // The problem that it belongs to.
  jitc_problem* problem() const { return problem_; }
  // For the C interface.
  jitc_node get() const { return node_; }

  // An operator of jitc_node_apply, by name.
  static jitc_node apply(const char* op, std::initializer_list<Node> arguments) {
    jitc_problem* const problem = arguments.begin()->problem();
    std::vector<jitc_node> nodes;
    for (const Node& argument : arguments) {
      detail::require_same(problem, argument.problem());
      nodes.push_back(argument.get());
    }
    return jitc_node_apply(problem, op, nodes.data(), nodes.size());
  }

 private:
  jitc_problem* problem_;
  jitc_node node_;
};

// True or false; what select and piecewise take.
class Condition : public Node {
 public:
  using Node::Node;
  // An operator of jitc_node_apply, by name.
  Condition(const char* op, std::initializer_list<Node> arguments)
      : Node(arguments.begin()->problem(), apply(op, arguments)) {}
};

// A value. Equal expressions of a problem are one node.
class Expression : public Node {
 public:
  using Node::Node;
  // An operator of jitc_node_apply, by name.
  Expression(const char* op, std::initializer_list<Node> arguments)
      : Node(arguments.begin()->problem(), apply(op, arguments)) {}

  // A number beside an expression: of the same problem.
  Expression number(double value) const { return Expression(problem(), jitc_node_number(problem(), value)); }

  /// @{ The sum, difference, product or quotient in its place.
  Expression& operator+=(const Expression& other) { return *this = Expression("add", {*this, other}); }
  Expression& operator-=(const Expression& other) { return *this = Expression("sub", {*this, other}); }
  Expression& operator*=(const Expression& other) { return *this = Expression("mul", {*this, other}); }
  Expression& operator/=(const Expression& other) { return *this = Expression("div", {*this, other}); }
  /// @}
};

// Operators and functions make nodes: nothing is computed here. A double beside an expression becomes a number of its
// problem.
// clang-format off
/// @{ Sign.
inline Expression operator-(const Expression& x) { return {"neg", {x}}; }
inline Expression operator+(const Expression& x) { return x; }
/// @}

// The operators and functions of two values, either of which may be a number.
#define JITC_BINARY(Result, function, op)                                                                              \
  inline Result function(const Expression& x, const Expression& y) { return {op, {x, y}}; }                           \
  inline Result function(const Expression& x, double y) { return {op, {x, x.number(y)}}; }                            \
  inline Result function(double x, const Expression& y) { return {op, {y.number(x), y}}; }
/// @{ Of two values: arithmetic, C's functions of the name, and comparisons, which give a condition.
JITC_BINARY(Expression, operator+, "add")
JITC_BINARY(Expression, operator-, "sub")
JITC_BINARY(Expression, operator*, "mul")
JITC_BINARY(Expression, operator/, "div")
JITC_BINARY(Expression, pow, "pow")
JITC_BINARY(Expression, max, "max")
JITC_BINARY(Expression, min, "min")
JITC_BINARY(Expression, atan2, "atan2")
JITC_BINARY(Expression, hypot, "hypot")
JITC_BINARY(Expression, fmod, "fmod")
JITC_BINARY(Condition, operator<, "lt")
JITC_BINARY(Condition, operator<=, "le")
JITC_BINARY(Condition, operator>, "gt")
JITC_BINARY(Condition, operator>=, "ge")
JITC_BINARY(Condition, operator==, "eq")
JITC_BINARY(Condition, operator!=, "ne")
/// @}
#undef JITC_BINARY

#define JITC_UNARY(function, op) \
  inline Expression function(const Expression& x) { return {op, {x}}; }
/// @{ Of one value: C's function of the name; `abs` is fabs, `sign` gives -1, 0 or 1.
JITC_UNARY(sqrt, "sqrt")
JITC_UNARY(cbrt, "cbrt")
JITC_UNARY(exp, "exp")
JITC_UNARY(expm1, "expm1")
JITC_UNARY(log, "log")
JITC_UNARY(log1p, "log1p")
JITC_UNARY(log2, "log2")
JITC_UNARY(log10, "log10")
JITC_UNARY(sin, "sin")
JITC_UNARY(cos, "cos")
JITC_UNARY(tan, "tan")
JITC_UNARY(asin, "asin")
JITC_UNARY(acos, "acos")
JITC_UNARY(atan, "atan")
JITC_UNARY(sinh, "sinh")
JITC_UNARY(cosh, "cosh")
JITC_UNARY(tanh, "tanh")
JITC_UNARY(asinh, "asinh")
JITC_UNARY(acosh, "acosh")
JITC_UNARY(atanh, "atanh")
JITC_UNARY(erf, "erf")
JITC_UNARY(erfc, "erfc")
JITC_UNARY(abs, "abs")
JITC_UNARY(floor, "floor")
JITC_UNARY(ceil, "ceil")
JITC_UNARY(sign, "sign")
/// @}
#undef JITC_UNARY

/// @{ Logic: neither side is left out.
inline Condition operator&&(const Condition& x, const Condition& y) { return {"and", {x, y}}; }
inline Condition operator||(const Condition& x, const Condition& y) { return {"or", {x, y}}; }
inline Condition operator!(const Condition& x) { return {"not", {x}}; }
/// @}
// clang-format on

// 0, mid, 1 for x < 0, = 0, > 0.
inline Expression heaviside(const Expression& x, double mid = 0.5) { return {"heaviside", {x, x.number(mid)}}; }
/// @{ One of two values.
inline Expression select(const Condition& condition, const Expression& when_true, const Expression& when_false) {
  return {"select", {condition, when_true, when_false}};
}
inline Expression select(const Condition& condition, const Expression& when_true, double when_false) {
  return select(condition, when_true, when_true.number(when_false));
}
inline Expression select(const Condition& condition, double when_true, const Expression& when_false) {
  return select(condition, when_false.number(when_true), when_false);
}
/// @}

// An unknown or auxiliary field.
class Field {
 public:
  // The problem that it belongs to.
  jitc_problem* problem() const { return problem_; }
  // Among the fields of its kind, in order of making.
  std::uint32_t index() const { return index_; }
  // How many it has.
  std::uint32_t components() const { return components_; }
  // A component.
  Expression operator()(std::uint32_t component) const { return leaf(JITC_LEAF_U, component, 0); }
  // Its derivative in a direction, 0 to dim - 1.
  Expression grad(std::uint32_t component, std::uint32_t direction) const {
    return leaf(JITC_LEAF_U_X, component, direction);
  }
  // Its derivative in time.
  Expression dot(std::uint32_t component) const { return leaf(JITC_LEAF_U_T, component, 0); }

 private:
  friend class Problem;
  Field(jitc_problem* problem, bool is_aux, std::uint32_t index, std::uint32_t components)
      : problem_(problem), is_aux_(is_aux), index_(detail::checked(problem, index)), components_(components) {}
  Expression leaf(jitc_leaf of_unknown, std::uint32_t component, std::uint32_t direction) const {
    const int kind = of_unknown + (is_aux_ ? JITC_LEAF_A - JITC_LEAF_U : 0);
    return {problem_, jitc_node_field(problem_, static_cast<jitc_leaf>(kind), index_, component, direction)};
  }

  jitc_problem* problem_;
  bool is_aux_;
  std::uint32_t index_;
  std::uint32_t components_;
};

// A slot of constants[].
class Constant : public Expression {
 public:
  // By order of making, which is its slot unless constants are sorted.
  std::uint32_t index() const { return index_; }

 private:
  friend class Problem;
  Constant(jitc_problem* problem, std::uint32_t index)
      : Expression(problem, jitc_node_leaf(problem, JITC_LEAF_CONSTANTS, detail::checked(problem, index))),
        index_(index) {}
  std::uint32_t index_;
};

// How a Jacobian block is made; see jitc_block.
struct BlockOptions {
  bool boundary = false;               // of the boundary residuals, with the normal
  std::vector<Expression> entries;     // given, instead of derivatives
  jitc_tangent tangent = JITC_NEWTON;  // how named nodes are differentiated
  std::uint32_t continuation = 0;      // index of a constant
  std::vector<std::string> frozen;     // names of nodes held fixed by Newton's derivatives
};

// See jitc_emit_options; prefix, skip_zero and table concern Problem::emit only.
struct EmitOptions {
  std::string sharing;                 // 0, 1 or auto; empty: auto, or the setting `cse`
  std::string types;                   // petsc or plain; empty: petsc
  std::uint32_t int_bits = 32;         // of PetscInt: 32 or 64
  bool complex_scalar = false;         // true is refused
  bool runtime_offsets = false;        // fields are found by uOff and its kin, not by baked offsets
  std::string prefix;                  // of all symbols
  bool skip_zero = false;              // functions that are identically zero are left out
  bool table = false;                  // with the exported table, see jitc_table
  bool lazy_arms = false;              // nothing that only an arm of a select needs is computed outside it
  jitc_layout layout = JITC_SEPARATE;  // one function each, or one for all
  std::string canary;                  // auto, off, on
  bool keep_zero = false;              // functions that are identically zero are made, too

  // For the C interface; valid while this lives.
  jitc_emit_options raw() const {
    jitc_emit_options raw = {};
    raw.size = sizeof raw;
    raw.sharing = detail::or_null(sharing);
    raw.types = detail::or_null(types);
    raw.int_bits = int_bits;
    raw.complex_scalar = complex_scalar;
    raw.runtime_offsets = runtime_offsets;
    raw.prefix = detail::or_null(prefix);
    raw.skip_zero = skip_zero;
    raw.table = table;
    raw.lazy_arms = lazy_arms;
    raw.layout = layout;
    raw.canary = detail::or_null(canary);
    raw.keep_zero = keep_zero;
    return raw;
  }
};

// Fields, constants, residual functions and the Jacobian blocks that are wanted of them. Each member throws jitc::Error
// where it happens; afterwards the problem has failed for good.
class Problem {
 public:
  // `dim`: 1 to 3.
  Problem(const std::string& name, std::uint32_t dim) : problem_(jitc_problem_open(name.c_str(), dim)) {
    if (!problem_) throw Error(JITC_INTERNAL, "no memory for a problem");
  }
  // In the format of docs/problem_format.md.
  static Problem from_json(const std::string& text) {
    jitc_problem* problem = nullptr;
    detail::attempt(
        [&](jitc_error** error) { return jitc_problem_from_json(text.c_str(), text.size(), &problem, error); });
    return Problem(problem);
  }

  // "ties", "guard", "sort_constants", "origin": see jitc_problem_set.
  void set(const std::string& option, const std::string& value) {
    jitc_problem_set(get(), option.c_str(), value.c_str());
    throw_if_failed();
  }

  // An unknown field; its components follow those of the fields before it.
  Field field(const std::string& name, std::uint32_t components) {
    return Field(get(), false, jitc_problem_field(get(), name.c_str(), components), components);
  }
  // An auxiliary field, which is given.
  Field aux_field(const std::string& name, std::uint32_t components) {
    return Field(get(), true, jitc_problem_aux_field(get(), name.c_str(), components), components);
  }
  // A slot of constants[] with its first value. Two of one name stay two.
  Constant constant(const std::string& name, double value) {
    return Constant(get(), jitc_problem_constant(get(), name.c_str(), value));
  }
  // Compiles nothing: values are no part of the source.
  void set_constant(const Constant& constant, double value) {
    detail::require_same(get(), constant.problem());
    jitc_problem_set_constant(get(), constant.index(), value);
    throw_if_failed();
  }
  // In order of slots, as the functions want them.
  std::vector<double> constants() const {
    std::vector<double> values(jitc_problem_constants(get(), nullptr, 0));
    jitc_problem_constants(get(), values.data(), values.size());
    return values;
  }

  // A double, by its 64 bits.
  Expression number(double value) { return {get(), jitc_node_number(get(), value)}; }
  // numerator / denominator, each rounded to a double first.
  Expression rational(std::int64_t numerator, std::int64_t denominator) {
    return {get(), jitc_node_rational(get(), numerator, denominator)};
  }
  // An entry of an argument; `index` as jitc_leaf says.
  Expression leaf(jitc_leaf kind, std::uint32_t index = 0) { return {get(), jitc_node_leaf(get(), kind, index)}; }
  // A coordinate, 0 to dim - 1.
  Expression x(std::uint32_t direction) { return leaf(JITC_LEAF_X, direction); }
  // A component of the outer normal; in boundary functions only.
  Expression normal(std::uint32_t direction) { return leaf(JITC_LEAF_N, direction); }
  // The time of the time integrator.
  Expression time() { return leaf(JITC_LEAF_T); }
  // `body` under a name, which blocks may hold fixed.
  Expression named(const std::string& name, const Expression& body) {
    detail::require_same(get(), body.problem());
    return {get(), jitc_node_named(get(), name.c_str(), body.get())};
  }
  // A function known by name only; `partials` as in jitc_problem_function, empty: none is known.
  std::uint32_t declare(const std::string& name, std::uint32_t arity, const std::vector<std::uint32_t>& partials = {}) {
    if (!partials.empty() && partials.size() != arity)
      throw Error(JITC_USAGE, "function '" + name + "' takes " + std::to_string(arity) + " arguments and has " +
                                  std::to_string(partials.size()) + " partial derivatives");
    return detail::checked(
        get(), jitc_problem_function(get(), name.c_str(), arity, partials.empty() ? nullptr : partials.data()));
  }
  // A call of a declared function.
  Expression call(std::uint32_t function, const std::vector<Expression>& arguments) {
    const std::vector<jitc_node> nodes = nodes_of(arguments);
    return {get(), jitc_node_call(get(), function, nodes.data(), nodes.size())};
  }

  // A residual function of `field`; `entries` in the layout of jitc_function_kind: F0 or F1.
  void residual(const std::string& name, jitc_function_kind kind, const Field& field,
                const std::vector<Expression>& entries, bool boundary = false) {
    detail::require_same(get(), field.problem());
    const std::vector<jitc_node> nodes = nodes_of(entries);
    jitc_problem_residual(get(), name.c_str(), kind, field.index(), boundary, nodes.data(), nodes.size());
    throw_if_failed();
  }
  // A Jacobian block: the derivatives of `test`'s residuals by `trial`; `kind` is G0 to G3.
  void block(const std::string& name, jitc_function_kind kind, const Field& test, const Field& trial,
             const BlockOptions& options = {}) {
    detail::require_same(get(), test.problem());
    detail::require_same(get(), trial.problem());
    const std::vector<jitc_node> entries = nodes_of(options.entries);
    std::vector<const char*> frozen;
    for (const std::string& node : options.frozen) frozen.push_back(node.c_str());
    jitc_block raw = {};
    raw.size = sizeof raw;
    raw.name = name.c_str();
    raw.kind = kind;
    raw.test = test.index();
    raw.trial = trial.index();
    raw.boundary = options.boundary;
    raw.entries = entries.empty() ? nullptr : entries.data();
    raw.entry_count = entries.size();
    raw.tangent = options.tangent;
    raw.continuation = options.continuation;
    raw.frozen = frozen.data();
    raw.frozen_count = frozen.size();
    jitc_problem_block(get(), &raw);
    throw_if_failed();
  }

  // Throws the first error; else that of sizes, kinds or indices that do not agree.
  void check() const {
    detail::attempt([&](jitc_error** error) { return jitc_problem_check(get(), error); });
  }
  // The C text.
  std::string emit(const EmitOptions& options = {}) const {
    const jitc_emit_options raw = options.raw();
    jitc_text* text = nullptr;
    detail::attempt([&](jitc_error** error) { return jitc_problem_emit(get(), &raw, &text, error); });
    return detail::take(text);
  }
  // The layout of constants[] as JSON.
  std::string manifest() const {
    jitc_text* text = nullptr;
    detail::attempt([&](jitc_error** error) { return jitc_problem_manifest(get(), &text, error); });
    return detail::take(text);
  }
  // One function's `size` entries at a point, without a compiler.
  std::vector<double> evaluate(const std::string& function, jitc_point point, std::size_t size) const {
    point.size = sizeof point;
    std::vector<double> values(size);
    detail::attempt([&](jitc_error** error) {
      return jitc_problem_evaluate(get(), function.c_str(), &point, values.data(), size, error);
    });
    return values;
  }

  // For the C interface; stays this object's.
  jitc_problem* get() const { return problem_.get(); }

 private:
  struct Free {
    void operator()(jitc_problem* problem) const { jitc_problem_free(problem); }
  };
  explicit Problem(jitc_problem* problem) : problem_(problem) {}

  std::vector<jitc_node> nodes_of(const std::vector<Expression>& expressions) const {
    std::vector<jitc_node> nodes;
    for (const Expression& expression : expressions) {
      detail::require_same(get(), expression.problem());
      nodes.push_back(expression.get());
    }
    return nodes;
  }
  void throw_if_failed() const {
    if (jitc_problem_has_failed(get())) detail::throw_first_error(get());
  }

  std::unique_ptr<jitc_problem, Free> problem_;
};

// A C text with the common subexpressions of its functions computed once; see jitc_share.
inline std::string share(const std::string& text) {
  jitc_text* shared = nullptr;
  detail::attempt([&](jitc_error** error) {
    // A length of 0 would mean: up to the final 0, which is the same here.
    return jitc_share(text.c_str(), text.size(), &shared, nullptr, error);
  });
  return detail::take(shared);
}

}  // namespace jitc

#endif  // JITC_PROBLEM_HPP
