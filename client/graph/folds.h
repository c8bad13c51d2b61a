// What compilers fold wrongly, and how the printed text prevents it.
#pragma once

#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

// What a compiler may see of a value that stands in one expression.
struct Sight {
  bool is_constant = false;
  bool is_zero = false;      // perhaps
  bool is_absolute = false;  // fabs, or a sum with or a multiple by a constant, of which it may leave fabs alone
  bool is_choice = false;    // among numbers and absolute values, or such a sum or multiple of it
  bool is_not_negative = false;
  bool is_decided = false;  // a condition that it may take for true or for false
  NodeId origin = 0;        // of a choice's sums with and multiples by constants: the choice; else itself
  double value = 0.0;       // of a constant

  bool is_never_minus_zero() const { return (is_absolute || is_choice) && !is_constant; }
};

// The sights of a graph that may grow: each node is looked at once.
class Sights {
 public:
  explicit Sights(const Graph& graph) : graph_(graph) {}
  // Valid until the next call.
  const Sight& operator[](NodeId id);

 private:
  Sight look(NodeId id);
  Sight look_at_condition(NodeId id, Sight sight) const;
  Sight look_at_select(NodeId id, Sight sight) const;
  Sight look_at_linear(NodeId id, Sight sight) const;

  const Graph& graph_;
  std::vector<Sight> sights_;
  std::vector<double> values_;
};

// gcc 12 takes 0.0 - x for -x where it sees that x is never -0.0, be it fabs or a choice among such values: wrong where
// x is 0, and done only where x stands in the same expression. Trees and shared text would differ. The values x that
// must be temporaries, therefore: one flag a node, or none at all when there are no such values. A few too many are
// named, since what a compiler computes beforehand is known here in part only. Of the functions of math.h it is fabs
// alone, which a call may name, too: gcc trusts neither sqrt nor exp, nor x * x, to have no -0.0.
std::vector<bool> values_to_name(const Graph& graph);

}  // namespace jitc::graph
