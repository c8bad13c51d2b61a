// Blocks as derivatives of the residual functions. What several blocks need is differentiated once: for each trial
// field and each way of treating named expressions, all functions by all directions in one sweep.
#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "client/graph/problem.h"

namespace jitc::graph {
namespace {

using common::ErrorKind;
using common::Result;

// How functions are treated before and while they are differentiated.
struct Treatment {
  bool newton = true;               // guarded; named expressions are seen through
  std::vector<std::string> frozen;  // but for these, in order
  auto operator<=>(const Treatment&) const = default;
};

Treatment newton_of(const Block& block) {
  Treatment newton{.newton = true, .frozen = block.frozen};
  std::ranges::sort(newton.frozen);
  newton.frozen.erase(std::ranges::unique(newton.frozen).begin(), newton.frozen.end());
  return newton;
}

Treatment picard() { return {.newton = false, .frozen = {}}; }

// Derivatives of some residual functions by one trial field's components and their gradients.
class Sweep {
 public:
  void need(std::size_t residual, bool by_gradient) {
    first_.try_emplace(residual, 0);
    (by_gradient ? by_gradients_ : by_components_) = true;
  }

  Result<void> run(Problem& problem, std::uint32_t trial, const Treatment& treatment) {
    std::vector<NodeId> functions;
    for (auto& [residual, first] : first_) {
      first = functions.size();
      const auto& entries = problem.residuals[residual].entries;
      functions.insert(functions.end(), entries.begin(), entries.end());
    }
    const Guarded guarded = guard_half_powers(problem.graph, functions, treatment.newton ? problem.guard : 0.0);
    const TangentOptions options{.ties = problem.ties,
                                 .frozen = treatment.frozen,
                                 .freeze_all = !treatment.newton,
                                 .label = [&](std::size_t function) { return entry_name(problem, function); },
                                 .origin =
                                     [&](NodeId id) {
                                       const auto original =
                                           std::ranges::find(guarded.copies, id) - guarded.copies.begin();
                                       const bool is_copy = static_cast<std::size_t>(original) < guarded.copies.size();
                                       return problem.origins.describe(is_copy ? static_cast<NodeId>(original) : id);
                                     }};
    auto derivatives = differentiate(problem.graph, guarded.functions, directions(problem, trial), options);
    if (!derivatives) return std::unexpected(std::move(derivatives.error()));
    derivatives_ = std::move(*derivatives);
    return {};
  }

  NodeId derivative(std::size_t residual, std::size_t entry, std::size_t component) const {
    return derivatives_[(first_.at(residual) + entry) * width_ + component];
  }
  NodeId derivative_by_gradient(std::size_t residual, std::size_t entry, std::size_t element) const {
    return derivatives_[(first_.at(residual) + entry) * width_ + gradients_ + element];
  }

 private:
  // "f1_0[3]" of the place among the functions.
  std::string entry_name(const Problem& problem, std::size_t function) const {
    auto found = first_.begin();
    while (std::next(found) != first_.end() && std::next(found)->second <= function) ++found;
    return problem.residuals[found->first].name + "[" + std::to_string(function - found->second) + "]";
  }

  std::vector<NodeId> directions(Problem& problem, std::uint32_t trial) {
    const Field& field = problem.fields[trial];
    std::vector<NodeId> leaves;
    if (by_components_)
      for (std::uint32_t i = 0; i < field.components; ++i) leaves.push_back(problem.graph.leaf(kU, field.first + i));
    gradients_ = leaves.size();
    if (by_gradients_)
      for (std::uint32_t i = 0; i < field.components * problem.dim; ++i)
        leaves.push_back(problem.graph.leaf(kUx, field.first * problem.dim + i));
    width_ = leaves.size();
    return leaves;
  }

  std::map<std::size_t, std::size_t> first_;  // by residual: the place of its entries among the functions
  bool by_components_ = false;
  bool by_gradients_ = false;
  std::size_t gradients_ = 0;  // the place of the first gradient among the directions
  std::size_t width_ = 0;
  std::vector<NodeId> derivatives_;
};

class Lowering {
 public:
  explicit Lowering(Problem& problem) : problem_(problem) {}

  Result<void> differentiate_all() {
    for (const Block& block : problem_.blocks) {
      if (!block.entries.empty()) continue;
      const auto residual = source_of(problem_, block);
      if (!residual) return std::unexpected(residual.error());
      const bool by_gradient = differentiates_by_gradient(block.kind);
      if (block.tangent != Tangent::kPicard) sweeps_[{block.trial, newton_of(block)}].need(*residual, by_gradient);
      if (block.tangent != Tangent::kNewton) sweeps_[{block.trial, picard()}].need(*residual, by_gradient);
    }
    for (auto& [key, sweep] : sweeps_)
      if (auto ran = sweep.run(problem_, key.first, key.second); !ran) return ran;
    return {};
  }

  Result<std::vector<NodeId>> entries_of(const Block& block) {
    if (!block.entries.empty()) return block.entries;
    const auto residual = source_of(problem_, block);
    if (!residual) return std::unexpected(residual.error());
    if (block.tangent == Tangent::kPicard) return arranged(block, *residual, picard());
    auto newton = arranged(block, *residual, newton_of(block));
    return block.tangent == Tangent::kNewton ? newton : continued(block, arranged(block, *residual, picard()), newton);
  }

 private:
  // In the layout of the block: fc, gc, df, dg, the last one fastest.
  std::vector<NodeId> arranged(const Block& block, std::size_t residual, const Treatment& treatment) const {
    const Sweep& sweep = sweeps_.at({block.trial, treatment});
    const std::size_t tests = problem_.fields[block.test].components;
    const std::size_t trials = problem_.fields[block.trial].components;
    const std::size_t flux = differentiates_flux(block.kind) ? problem_.dim : 1;
    const bool by_gradient = differentiates_by_gradient(block.kind);
    const std::size_t gradient = by_gradient ? problem_.dim : 1;
    std::vector<NodeId> entries;
    entries.reserve(size_of(problem_, block));
    for (std::size_t fc = 0; fc < tests; ++fc)
      for (std::size_t gc = 0; gc < trials; ++gc)
        for (std::size_t df = 0; df < flux; ++df)
          for (std::size_t dg = 0; dg < gradient; ++dg)
            entries.push_back(by_gradient ? sweep.derivative_by_gradient(residual, fc * flux + df, gc * gradient + dg)
                                          : sweep.derivative(residual, fc * flux + df, gc));
    return entries;
  }

  // picard + c * (newton - picard)
  std::vector<NodeId> continued(const Block& block, const std::vector<NodeId>& picard_entries,
                                const std::vector<NodeId>& newton_entries) {
    Graph& graph = problem_.graph;
    const NodeId c = graph.leaf(kConstants, block.continuation);
    std::vector<NodeId> entries;
    for (std::size_t i = 0; i < picard_entries.size(); ++i) {
      const NodeId p = picard_entries[i];
      const NodeId n = newton_entries[i];
      if (p == n) {
        entries.push_back(p);
      } else if (graph.is_number(p, 0.0)) {
        entries.push_back(graph.binary(Op::kMul, c, n));
      } else {
        entries.push_back(graph.binary(Op::kAdd, p, graph.binary(Op::kMul, c, graph.binary(Op::kSub, n, p))));
      }
    }
    return entries;
  }

  Problem& problem_;
  std::map<std::pair<std::uint32_t, Treatment>, Sweep> sweeps_;
};

bool is_in_slot_order(const Problem& problem) { return std::ranges::is_sorted(constant_slots(problem)); }

}  // namespace

Result<std::vector<PointwiseFunction>> lower(Problem& problem) {
  if (auto checked = check(problem); !checked) return std::unexpected(std::move(checked.error()));
  if (!is_in_slot_order(problem)) problem = in_slot_order(problem);
  Lowering lowering(problem);
  if (auto done = lowering.differentiate_all(); !done) {
    done.error().kind = ErrorKind::kInvalidSource;
    return std::unexpected(std::move(done.error()));
  }
  std::vector<PointwiseFunction> functions;
  for (const Residual& residual : problem.residuals)
    functions.push_back({.name = residual.name,
                         .signature = residual.boundary ? Signature::kBoundaryResidual : Signature::kResidual,
                         .outputs = residual.entries,
                         .group = residual.boundary ? "bd_residual" : "residual"});
  for (const Block& block : problem.blocks) {
    auto entries = lowering.entries_of(block);
    if (!entries) return std::unexpected(std::move(entries.error()));
    functions.push_back({.name = block.name,
                         .signature = block.boundary ? Signature::kBoundaryJacobian : Signature::kJacobian,
                         .outputs = std::move(*entries),
                         .group = block.boundary ? "bd_jacobian" : "jacobian"});
  }
  if (auto fits = check_capacity(problem.graph); !fits) return std::unexpected(std::move(fits.error()));
  return functions;
}

}  // namespace jitc::graph
