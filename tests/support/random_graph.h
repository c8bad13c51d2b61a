// Random expressions with every operator but fmax and fmin (whose zeros C leaves open), from a seed: the same on every
// machine.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::testing {

// Grows a graph. Expressions are made from recent ones, so that they share and nest, and their expanded size stays
// bounded.
class RandomGraph {
 public:
  explicit RandomGraph(std::uint64_t seed) : random_(seed) {
    using graph::kA;
    using graph::kConstants;
    using graph::kU;
    using graph::kUx;
    using graph::kX;
    for (std::uint32_t i = 0; i < 3; ++i) {
      for (const auto argument : {kU, kUx, kA, kX, kConstants}) add(graph.leaf(argument, i), 1);
    }
    add(graph.leaf(graph::kT), 1);
    for (const double number : {0.0, -0.0, 0.5, -3.0, 2.0, 1e-18, 1.0 / 3.0, 1e300, 5e-324}) {
      add(graph.number(number), 1);
    }
    conditions_.push_back(graph.truth(true));
    conditions_.push_back(graph.truth(false));
  }

  // A new expression; of at most this many nodes when expanded.
  graph::NodeId grow(std::uint64_t most = 400) {
    for (;;) {
      const Built built = make();
      if (built.size > most) continue;
      add(built.id, built.size);
      return built.id;
    }
  }

  graph::Graph graph;

 private:
  struct Built {
    graph::NodeId id;
    std::uint64_t size;
  };

  void add(graph::NodeId id, std::uint64_t size) { values_.push_back({id, size}); }
  std::size_t below(std::size_t n) { return random_() % n; }

  // Mostly a recent one.
  Built pick() {
    const std::size_t recent = 24;
    const std::size_t n = values_.size();
    return values_[n > recent && below(4) != 0 ? n - 1 - below(recent) : below(n)];
  }

  graph::NodeId condition(std::uint64_t& size) {
    using graph::Op;
    static constexpr Op kRelations[] = {Op::kLt, Op::kLe, Op::kGt, Op::kGe, Op::kEq, Op::kNe};
    graph::NodeId made = 0;
    const std::size_t kind = below(5);
    const auto any = [&] { return conditions_[below(conditions_.size())]; };
    if (kind < 3) {
      const Built a = pick();
      const Built b = pick();
      size += a.size + b.size;
      made = graph.binary(kRelations[below(6)], a.id, b.id);
    } else if (conditions_.size() > 40) {
      return any();
    } else if (kind == 3) {
      made = graph.unary(Op::kNot, any());
    } else {
      made = graph.binary(below(2) == 0 ? Op::kAnd : Op::kOr, any(), any());
    }
    if (conditions_.size() <= 40) conditions_.push_back(made);
    size += 20;
    return made;
  }

  Built make() {
    using graph::Op;
    const Built a = pick();
    const Built b = pick();
    const auto between = [&](Op first, Op last) {
      return static_cast<Op>(static_cast<std::size_t>(first) +
                             below(static_cast<std::size_t>(last) - static_cast<std::size_t>(first) + 1));
    };
    switch (below(10)) {
      case 0:
      case 1:
        return {graph.unary(between(Op::kNeg, Op::kSign), a.id), a.size + 1};
      case 2: {
        std::uint64_t size = a.size + b.size;
        const graph::NodeId chosen = condition(size);
        return {graph.select(chosen, a.id, b.id), size};
      }
      case 3: {
        std::vector<graph::NodeId> list{a.id, b.id};
        std::uint64_t size = a.size + b.size;
        for (std::size_t more = below(3); more > 0; --more) {
          const Built next = pick();
          list.push_back(next.id);
          size += next.size;
        }
        return {graph.extremum(below(2) == 0 ? Op::kMax : Op::kMin, list), size};
      }
      case 4:
        return {graph.binary(between(Op::kPow, Op::kHeaviside), a.id, b.id), a.size + b.size};
      case 5:
        if (below(3) == 0) return {graph.named("n" + std::to_string(below(5)), a.id), a.size};
        [[fallthrough]];
      default:
        return {graph.binary(between(Op::kAdd, Op::kDiv), a.id, b.id), a.size + b.size};
    }
  }

  std::mt19937_64 random_;
  std::vector<Built> values_;
  std::vector<graph::NodeId> conditions_;
};

}  // namespace jitc::testing
