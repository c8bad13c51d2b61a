// Properties that hold for all graphs, on many random ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "client/graph/derivative.h"
#include "client/graph/emit.h"
#include "client/graph/evaluate.h"
#include "tests/support/graph_oracle.h"

namespace jitc::graph {
namespace {

using testing::apply;
using testing::Inputs;
using testing::same_bits;

// One random number generator for all choices: the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : random_(seed) {}
  std::size_t below(std::size_t n) { return random_() % n; }
  template <class T>
  T one_of(std::span<const T> list) {
    return list[below(list.size())];
  }
  Op between(Op first, Op last) {
    const auto start = static_cast<std::size_t>(first);
    return static_cast<Op>(start + below(static_cast<std::size_t>(last) - start + 1));
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(random_() >> 11) * 0x1p-53;
  }
  std::uint64_t bits() { return random_(); }

 private:
  std::mt19937_64 random_;
};

// ---- what is built computes what was written ------------------------------------------------------------------------

// An expression as written, with its node and its values at all points, computed step by step without any graph.
struct Written {
  NodeId id;
  std::vector<double> values;
};

class Program {
 public:
  static constexpr std::size_t kPoints = 24;

  explicit Program(std::uint64_t seed) : dice_(seed) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      std::vector<double> values(kPoints);
      for (double& value : values) value = input();
      leaves_.push_back(values);
      numbers_.push_back({graph.leaf(kU, i), values});
    }
    for (const double c : {0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -4.0, 3.0, 0.1, 0x1p-1022, 1e300}) {
      numbers_.push_back({graph.number(c), std::vector(kPoints, c)});
    }
    conditions_.push_back({graph.truth(true), std::vector(kPoints, 1.0)});
    for (int i = 0; i < 150; ++i) step();
  }

  double leaf(std::uint32_t index, std::size_t point) const { return leaves_[index][point]; }
  const std::vector<Written>& written() const { return numbers_; }

  Graph graph;

 private:
  double input() {
    switch (dice_.below(3)) {
      case 0:
        return dice_.one_of<double>(testing::special_values());
      case 1:
        return dice_.uniform(-3, 3);
      default:
        return std::bit_cast<double>(dice_.bits());
    }
  }

  static Written made(Op op, NodeId id, std::initializer_list<const Written*> arguments) {
    Written result{id, std::vector<double>(kPoints)};
    for (std::size_t p = 0; p < kPoints; ++p) {
      std::vector<double> x;
      for (const Written* argument : arguments) x.push_back(argument->values[p]);
      result.values[p] = apply<double>(op, x);
    }
    return result;
  }

  void step() {
    const Written a = dice_.one_of<Written>(numbers_);
    const Written b = dice_.one_of<Written>(numbers_);
    const Written c = dice_.one_of<Written>(numbers_);
    const Written condition = dice_.one_of<Written>(conditions_);
    const NodeId list[] = {a.id, b.id, c.id};
    switch (dice_.below(8)) {
      case 0: {
        const Op op = dice_.between(Op::kNeg, Op::kSign);
        return numbers_.push_back(made(op, graph.unary(op, a.id), {&a}));
      }
      case 1: {
        const Op op = dice_.between(Op::kPow, Op::kFmin);
        return numbers_.push_back(made(op, graph.binary(op, a.id, b.id), {&a, &b}));
      }
      case 2: {
        const Op op = dice_.below(2) == 0 ? Op::kMax : Op::kMin;
        return numbers_.push_back(made(op, graph.extremum(op, list), {&a, &b, &c}));
      }
      case 3: {
        const NodeId id = graph.select(condition.id, a.id, b.id);
        return numbers_.push_back(made(Op::kSelect, id, {&condition, &a, &b}));
      }
      case 4: {
        const Op op = dice_.between(Op::kLt, Op::kNe);
        conditions_.push_back(made(op, graph.binary(op, a.id, b.id), {&a, &b}));
        const Written& last = conditions_.back();
        const Op both = dice_.below(2) == 0 ? Op::kAnd : Op::kOr;
        return conditions_.push_back(made(both, graph.binary(both, last.id, condition.id), {&last, &condition}));
      }
      default: {  // where the rewrites are
        const Op op = dice_.between(Op::kAdd, Op::kDiv);
        return numbers_.push_back(made(op, graph.binary(op, a.id, b.id), {&a, &b}));
      }
    }
  }

  Dice dice_;
  std::vector<std::vector<double>> leaves_;
  std::vector<Written> numbers_;
  std::vector<Written> conditions_;
};

TEST(RandomGraph, ComputesWhatWasWritten) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Program program(seed);
    std::vector<NodeId> outputs;
    for (const Written& written : program.written()) outputs.push_back(written.id);
    for (std::size_t p = 0; p < Program::kPoints; ++p) {
      const auto got =
          evaluate(program.graph, outputs, [&](const Node& leaf) { return program.leaf(leaf.args[0], p); });
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const double expected = program.written()[i].values[p];
        ASSERT_TRUE(same_bits(got[i], expected))
            << "seed " << seed << ", expression " << i << ", point " << p << ": " << got[i] << ", not " << expected;
      }
    }
  }
}

TEST(RandomGraph, CopiesAreTheSame) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Program program(seed);
    const Graph& from = program.graph;
    Graph to;
    for (std::uint32_t i = 0; i < seed % 7; ++i) to.leaf(kX, i);
    std::vector<NodeId> ids(from.size());
    std::vector<NodeId> arguments;
    for (NodeId id = 0; id < from.size(); ++id) {
      arguments.clear();
      for (const NodeId argument : from.arguments(id)) arguments.push_back(ids[argument]);
      ids[id] = to.rebuild(from, id, arguments);
      ASSERT_EQ(to.content(ids[id]), from.content(id)) << "seed " << seed << ", node " << id;
    }
    ASSERT_EQ(to.size(), from.size() + seed % 7);
  }
}

// ---- derivatives ----------------------------------------------------------------------------------------------------

// Expressions that are smooth, or piecewise smooth with kinks that a random point is not on, and of moderate size.
class Smooth {
 public:
  // Expressions may well be equal for other reasons than being one node: three or more of them that tie have a
  // derivative only when the first is taken.
  explicit Smooth(std::uint64_t seed) : ties(seed % 2 == 0 ? Ties::kHalf : Ties::kFirst), dice_(seed) {
    for (std::uint32_t i = 0; i < 4; ++i) {
      values.push_back(graph.leaf(kU, i));
      point.push_back(dice_.uniform(-1.5, 1.5));
    }
    values.push_back(graph.leaf(kA, 0));
    point.push_back(dice_.uniform(0.5, 1.5));
    values.push_back(graph.number(0.7));
    values.push_back(graph.number(-2.0));
    while (values.size() < 40) values.push_back(step());
  }

  Ties ties;
  Graph graph;
  std::vector<NodeId> values;
  std::vector<double> point;  // of the leaves, which come first

 private:
  NodeId step() {
    const NodeId a = dice_.one_of<NodeId>(values);
    const NodeId b = dice_.one_of<NodeId>(values);
    const NodeId c = dice_.one_of<NodeId>(values);
    // Somewhere in [1, 5], where every function is smooth; and bounded, so that nothing explodes.
    const auto tame = [&](NodeId x) {
      return graph.binary(Op::kAdd, graph.number(3.0),
                          graph.binary(Op::kMul, graph.number(2.0), graph.unary(Op::kSin, x)));
    };
    static constexpr Op kUnary[] = {Op::kNeg, Op::kCos,  Op::kAtan, Op::kTanh,  Op::kAsinh,
                                    Op::kErf, Op::kErfc, Op::kAbs,  Op::kFloor, Op::kSign};
    static constexpr Op kPositive[] = {Op::kSqrt,  Op::kCbrt, Op::kLog,   Op::kLog1p, Op::kLog2,
                                       Op::kLog10, Op::kExp,  Op::kExpm1, Op::kSinh,  Op::kCosh};
    static constexpr Op kBinary[] = {Op::kDiv, Op::kPow, Op::kAtan2, Op::kHypot, Op::kFmax, Op::kFmin};
    const NodeId list[] = {a, b, c};
    switch (dice_.below(9)) {
      case 0:
        return graph.unary(dice_.one_of<Op>(kUnary), a);
      case 1:
        return graph.unary(dice_.one_of<Op>(kPositive), tame(a));
      case 2:
        return graph.binary(dice_.one_of<Op>(kBinary), tame(a), tame(b));
      case 3:
        return graph.extremum(dice_.below(2) == 0 ? Op::kMax : Op::kMin,
                              std::span<const NodeId>(list).first(ties == Ties::kHalf ? 2 : 2 + dice_.below(2)));
      case 4:
        return graph.select(graph.binary(Op::kLt, a, b), b, c);
      case 5:
        return graph.unary(Op::kTanh, graph.binary(Op::kMul, a, b));
      case 6:
        return graph.named("n" + std::to_string(dice_.below(3)), a);
      default:
        return graph.binary(dice_.between(Op::kAdd, Op::kMul), a, b);
    }
  }

  Dice dice_;
};

TEST(RandomGraph, DerivativesAgreeWithDifferences) {
  std::size_t compared = 0;
  std::size_t skipped = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Smooth smooth(seed);
    Inputs<long double> inputs;
    for (std::uint32_t i = 0; i < 4; ++i) inputs.leaves[{kU, i}] = smooth.point[i];
    inputs.leaves[{kA, 0}] = smooth.point[4];
    std::vector<NodeId> directions;
    for (std::uint32_t i = 0; i < 4; ++i) directions.push_back(smooth.graph.leaf(kU, i));
    const auto rows = differentiate(smooth.graph, smooth.values, directions, {.ties = smooth.ties});
    ASSERT_TRUE(rows);
    const auto got = evaluate(smooth.graph, *rows,
                              [&](const Node& leaf) { return smooth.point[leaf.argument == kA ? 4 : leaf.args[0]]; });
    for (std::uint32_t j = 0; j < 4; ++j) {
      const auto fine = testing::differences(smooth.graph, smooth.values, {kU, j}, inputs, 1e-5L);
      const auto coarse = testing::differences(smooth.graph, smooth.values, {kU, j}, inputs, 2e-5L);
      for (std::size_t i = 0; i < smooth.values.size(); ++i) {
        const double scale = std::max(1.0, std::fabs(fine[i]));
        // A kink may lie within the step.
        if (!(std::fabs(fine[i] - coarse[i]) <= 1e-8 * scale)) {
          ++skipped;
          continue;
        }
        ++compared;
        ASSERT_NEAR(got[i * 4 + j], fine[i], 1e-7 * scale) << "seed " << seed << ", expression " << i << ", slot " << j;
      }
    }
  }
  EXPECT_GT(compared, 40'000U);
  EXPECT_LT(skipped * 50, compared);
}

std::string text_of(const Graph& graph, const std::vector<NodeId>& values) {
  std::vector<Output> outputs;
  for (const NodeId value : values) outputs.push_back({value, "out[" + std::to_string(outputs.size()) + "]"});
  BodyOptions options;
  options.spell = [&](const Node& leaf) {
    return std::string(graph.argument_name(leaf.argument)) + "[" + std::to_string(leaf.args[0]) + "]";
  };
  return emit_body(graph, outputs, options).value();
}

// Entry by entry, in any order, gives the text of all at once, byte for byte.
TEST(RandomGraph, DerivativesPrintTheSameHoweverTheyAreAskedFor) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Smooth together(seed);
    Smooth alone(seed);
    std::vector<NodeId> directions;
    for (std::uint32_t j = 0; j < 4; ++j) directions.push_back(together.graph.leaf(kU, j));
    const auto all = differentiate(together.graph, together.values, directions, {.ties = together.ties});
    ASSERT_TRUE(all);
    std::vector<NodeId> entries(all->size());
    for (std::size_t k = entries.size(); k-- > 0;) {
      const auto entry = differentiate(alone.graph, std::vector{alone.values[k / 4]}, std::vector{directions[k % 4]},
                                       {.ties = alone.ties});
      ASSERT_TRUE(entry);
      entries[k] = entry->front();
    }
    ASSERT_EQ(text_of(alone.graph, entries), text_of(together.graph, *all)) << "seed " << seed;
  }
}

TEST(RandomGraph, DerivativesDoNotDependOnTheirCompany) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Smooth together(seed);
    std::vector<NodeId> directions;
    for (std::uint32_t j = 0; j < 4; ++j) directions.push_back(together.graph.leaf(kU, j));
    for (const Ties ties : {Ties::kHalf, Ties::kFirst}) {
      const auto all = differentiate(together.graph, together.values, directions, {.ties = ties});
      ASSERT_TRUE(all);
      for (std::size_t i = 0; i < together.values.size(); i += 3) {
        Smooth alone(seed);
        for (std::uint32_t j = 4; j-- > 0;) {
          const auto entry = differentiate(alone.graph, std::vector{alone.values[i]},
                                           std::vector{alone.graph.leaf(kU, j)}, {.ties = ties});
          ASSERT_TRUE(entry);
          ASSERT_EQ(alone.graph.content(entry->front()), together.graph.content((*all)[i * 4 + j]))
              << "seed " << seed << ", expression " << i << ", slot " << j;
        }
      }
    }
  }
}

}  // namespace
}  // namespace jitc::graph
