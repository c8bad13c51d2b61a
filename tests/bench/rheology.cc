#include "tests/bench/rheology.h"

#include <array>
#include <optional>

namespace jitc::bench {
namespace {

using graph::Argument;
using graph::Graph;
using graph::NodeId;
using graph::Op;

// A handle with operators, so that the laws below read as mathematics.
struct Value {
  Graph* graph;
  NodeId id;
};

Value binary(Op op, Value x, Value y) { return {x.graph, x.graph->binary(op, x.id, y.id)}; }
Value number(Graph* graph, double value) { return {graph, graph->number(value)}; }
Value operator+(Value x, Value y) { return binary(Op::kAdd, x, y); }
Value operator-(Value x, Value y) { return binary(Op::kSub, x, y); }
Value operator*(Value x, Value y) { return binary(Op::kMul, x, y); }
Value operator/(Value x, Value y) { return binary(Op::kDiv, x, y); }
Value operator-(double x, Value y) { return number(y.graph, x) - y; }
Value operator*(double x, Value y) { return number(y.graph, x) * y; }
Value operator/(double x, Value y) { return number(y.graph, x) / y; }
Value square(Value x) { return x * x; }
Value sqrt(Value x) { return {x.graph, x.graph->unary(Op::kSqrt, x.id)}; }
Value exp(Value x) { return {x.graph, x.graph->unary(Op::kExp, x.id)}; }
Value pow(Value x, double exponent) { return binary(Op::kPow, x, number(x.graph, exponent)); }

Value extremum(Op op, Value x, Value y) {
  const std::array<NodeId, 2> arguments{x.id, y.id};
  return {x.graph, x.graph->extremum(op, arguments)};
}
Value max(Value x, Value y) { return extremum(Op::kMax, x, y); }
Value min(Value x, Value y) { return extremum(Op::kMin, x, y); }

// Place of component (i, j) of a symmetric tensor that is stored as its six upper entries.
constexpr std::array<unsigned, 9> kSymmetric{0, 1, 2, 1, 3, 4, 2, 4, 5};

class Model {
 public:
  explicit Model(Rheology& rheology) : graph_(&rheology.graph), rheology_(&rheology) {
    graph_->reserve(8192);
    for (unsigned k = 0; k < 9; ++k) rheology_->directions.push_back(leaf(graph::kUx, k).id);
    for (unsigned i = 0; i < 4; ++i) rheology_->directions.push_back(leaf(graph::kU, i).id);
  }

  void small() {
    const auto rate = strain_rate();
    const Value temperature = aux(0);
    const Value rate_invariant = invariant(rate, constant(0));
    const double n = 3.5;
    const Value creep = constant(1) * pow(rate_invariant, (1 - n) / n) *
                        exp((constant(2) + pressure() * constant(3)) / (constant(4) * temperature * number(graph_, n)));
    const Value plastic = (constant(5) * constant(6) + pressure() * constant(7)) / (2.0 * rate_invariant);
    const Value viscosity = max(min(1.0 / (1.0 / creep + 1.0 / plastic), constant(8)), constant(9));
    forces(temperature);
    stresses([&](unsigned k) { return 2.0 * viscosity * rate[k]; });
  }

  void large(bool is_isotropic) {
    const Value temperature = aux(0);
    const Value elastic = constant(0) * constant(1);
    auto rate = strain_rate();
    for (unsigned k = 0; k < 9; ++k) rate[k] = rate[k] + aux(10 + kSymmetric[k]) / (2.0 * elastic);
    const Value rate_invariant = invariant(rate, constant(2));
    const Value creep = composite_creep(elastic, temperature, rate_invariant);
    const Value isotropic = max(min(creep, yield_stress() / (2.0 * rate_invariant)), constant(46));
    forces(temperature);
    if (is_isotropic) {
      stresses([&](unsigned k) { return 2.0 * isotropic * rate[k]; });
    } else {
      anisotropic_stresses(isotropic, rate);
    }
  }

 private:
  using Tensor = std::array<Value, 9>;

  Value leaf(Argument argument, unsigned index) { return {graph_, graph_->leaf(argument, index)}; }
  Value constant(unsigned k) { return leaf(graph::kConstants, k); }
  Value aux(unsigned k) { return leaf(graph::kA, k); }
  Value velocity(unsigned i) { return leaf(graph::kU, i); }
  Value pressure() { return leaf(graph::kU, 3); }
  Value gradient(unsigned i, unsigned j) { return leaf(graph::kUx, 3 * i + j); }
  void output(Value value) { rheology_->outputs.push_back(value.id); }

  Tensor strain_rate() {
    Tensor rate;
    for (unsigned i = 0; i < 3; ++i) {
      for (unsigned j = 0; j < 3; ++j) {
        rate[3 * i + j] = i == j ? gradient(i, i) : 0.5 * (gradient(i, j) + gradient(j, i));
      }
    }
    return rate;
  }

  static Value invariant(const Tensor& tensor, Value floor) {
    Value sum = square(tensor[0]);
    for (unsigned k = 1; k < 9; ++k) sum = sum + square(tensor[k]);
    return sqrt(0.5 * sum + floor);
  }

  // Harmonic mean of the elastic viscosity and four creep laws.
  Value composite_creep(Value elastic, Value temperature, Value rate_invariant) {
    constexpr std::array<double, 4> kStress{1.0, 3.5, 2.0, 2.9};
    constexpr std::array<double, 4> kGrain{3.0, 0.0, 2.0, 1.4};
    Value inverse = 1.0 / elastic;
    for (unsigned k = 0; k < 4; ++k) {
      const double n = kStress[k];
      Value law = constant(10 + 4 * k);
      if (n != 1.0) law = law * pow(rate_invariant, (1 - n) / n);
      if (kGrain[k] == 3.0) {
        law = law * (aux(2) * aux(2) * aux(2));
      } else if (kGrain[k] == n) {
        law = law * aux(2);
      } else if (kGrain[k] != 0.0) {
        law = law * pow(aux(2), kGrain[k] / n);
      }
      const Value energy = constant(11 + 4 * k) + pressure() * constant(12 + 4 * k);
      inverse = inverse + 1.0 / (law * exp(energy / (constant(13 + 4 * k) * temperature * number(graph_, n))));
    }
    return 1.0 / inverse;
  }

  Value yield_stress() {
    const Value weakening = min(number(graph_, 1.0), aux(1) / constant(40));
    const Value cohesion = constant(41) + (constant(42) - constant(41)) * weakening;
    const Value friction = constant(43) + (constant(44) - constant(43)) * weakening;
    return max(cohesion * sqrt(1.0 - square(friction)) + pressure() * friction, constant(45));
  }

  void forces(Value temperature) {
    const Value speed = sqrt(square(velocity(0)) + square(velocity(1)) + square(velocity(2)) + constant(30));
    for (unsigned i = 0; i < 3; ++i) {
      output(constant(31) * (1.0 - constant(32) * temperature) * constant(33 + i) + constant(36) * speed * velocity(i));
    }
  }

  template <class Stress>
  void stresses(const Stress& deviatoric) {
    for (unsigned k = 0; k < 9; ++k) output(k % 4 == 0 ? deviatoric(k) - pressure() : deviatoric(k));
    output(gradient(0, 0) + gradient(1, 1) + gradient(2, 2));
  }

  // A weak plane with normal n: shear along it has its own yield law.
  void anisotropic_stresses(Value isotropic, const Tensor& rate) {
    const std::array<Value, 3> n{aux(3), aux(4), aux(5)};
    const auto traction = [&](unsigned i) {
      return rate[3 * i] * n[0] + rate[3 * i + 1] * n[1] + rate[3 * i + 2] * n[2];
    };
    const std::array<Value, 3> t{traction(0), traction(1), traction(2)};
    const Value normal = t[0] * n[0] + t[1] * n[1] + t[2] * n[2];
    const Value shear = sqrt(square(t[0]) + square(t[1]) + square(t[2]) - square(normal) + constant(2));
    const Value weak = max(min(isotropic, (constant(47) + pressure() * constant(48)) / (2.0 * shear)), constant(46));
    const Value difference = isotropic - weak;
    stresses([&](unsigned ij) {
      std::optional<Value> plane;
      for (unsigned kl = 0; kl < 9; ++kl) {
        const Value term = weak_plane(ij / 3, ij % 3, kl / 3, kl % 3, n) * rate[kl];
        plane = plane ? *plane + term : term;
      }
      return 2.0 * isotropic * rate[ij] - 2.0 * difference * *plane;
    });
  }

  // The tensor by which a weak plane with normal n differs from isotropy.
  static Value weak_plane(unsigned i, unsigned j, unsigned k, unsigned l, const std::array<Value, 3>& n) {
    Value sum = -2.0 * n[i] * n[j] * n[k] * n[l];
    if (j == l) sum = sum + 0.5 * (n[i] * n[k]);
    if (l == i) sum = sum + 0.5 * (n[j] * n[k]);
    if (j == k) sum = sum + 0.5 * (n[i] * n[l]);
    if (k == i) sum = sum + 0.5 * (n[j] * n[l]);
    return sum;
  }

  Graph* graph_;
  Rheology* rheology_;
};

}  // namespace

Rheology make_rheology(RheologySize size) {
  Rheology rheology;
  Model model(rheology);
  switch (size) {
    case RheologySize::kSmall:
      model.small();
      break;
    case RheologySize::kMedium:
      model.large(true);
      break;
    case RheologySize::kLarge:
      model.large(false);
      break;
  }
  return rheology;
}

}  // namespace jitc::bench
