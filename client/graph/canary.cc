#include "client/graph/canary.h"

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <utility>

#include "client/graph/bounded.h"
#include "client/graph/signature.h"

namespace jitc::graph {
namespace {

using common::Canary;
using Passed = Canary::Argument::Kind;

constexpr std::size_t kWays = 3;         // of choosing points
constexpr std::size_t kCandidates = 36;  // points that are looked at, and taken
constexpr std::size_t kPoints = 6;
constexpr double kOctaves = 3;  // from one size to the next
// Fills the widest vectors several times, with a rest.
constexpr std::uint32_t kCopies = 37;

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014): the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double between(double low, double high) { return low + (high - low) * static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

// The problem's functions as residuals and blocks, in lower()'s order.
struct Titled {
  std::string kind, of;
  std::vector<std::uint32_t> shape;
};

Titled title_of(const Problem& problem, std::size_t index) {
  static constexpr std::array<const char*, 6> kNames{"f0", "f1", "g0", "g1", "g2", "g3"};
  const auto name = [](Kind kind) { return std::string(kNames[static_cast<std::size_t>(kind)]); };
  if (index < problem.residuals.size()) {
    const Residual& residual = problem.residuals[index];
    const Field& field = problem.fields[residual.field];
    Titled titled{name(residual.kind), "field " + field.name, {field.components}};
    if (residual.kind == Kind::kF1) titled.shape.push_back(problem.dim);
    if (residual.boundary) titled.of += " on the boundary";
    return titled;
  }
  const Block& block = problem.blocks[index - problem.residuals.size()];
  const Field& test = problem.fields[block.test];
  const Field& trial = problem.fields[block.trial];
  Titled titled{name(block.kind), "block " + test.name + "-" + trial.name, {test.components, trial.components}};
  if (differentiates_flux(block.kind)) titled.shape.push_back(problem.dim);
  if (differentiates_by_gradient(block.kind)) titled.shape.push_back(problem.dim);
  if (block.boundary) titled.of += " on the boundary";
  return titled;
}

// The caller's thread may round otherwise, flush subnormal numbers, or trap what a point far off brings about.
class DefaultArithmetic {
 public:
  DefaultArithmetic() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultArithmetic() { std::fesetenv(&saved_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t saved_;
};

class Maker {
 public:
  Maker(const Problem& problem, std::span<const PointwiseFunction> functions, const CanaryOptions& options)
      : problem_(problem), functions_(functions), options_(options), random_(options.seed) {
    for (ArgumentId argument = kU; argument < kFirstOther; ++argument) {
      first_[argument] = numbers_;
      if (argument != kT && argument != kUtShift) numbers_ += *length_of(problem, argument);
    }
  }

  Canary make() {
    choose();
    if (chosen_.empty()) return {};
    canary_.int_bits = options_.int_bits;
    write_calls();
    add_points();
    return std::move(canary_);
  }

 private:
  bool is_fused() const { return options_.layout != CanaryOptions::Layout::kSeparate; }
  std::uint32_t length(ArgumentId argument) const { return *length_of(problem_, argument); }

  // Which functions, at how many points. Fused ones are called together, or not at all.
  void choose() {
    std::size_t entries = 0;
    for (std::size_t i = 0; i < functions_.size(); ++i) {
      const std::size_t more = functions_[i].outputs.size();
      if (!is_fused() && is_zero(problem_.graph, functions_[i])) continue;  // left out of the module
      if (entries + more > kMostCanaryValues) {
        if (!is_fused()) continue;
        chosen_.clear();
        return;
      }
      entries += more;
      chosen_.push_back(i);
    }
    if (is_fused() && chosen_.size() + kFirstOther > Canary::kMostArguments) chosen_.clear();
    points_ = std::min(kPoints, kMostCanaryValues / std::max<std::size_t>(entries, 1));
  }

  Canary::Output output_of(std::size_t function) const {
    Titled titled = title_of(problem_, function);
    titled.of += " (" + functions_[function].name + ")";
    return {.kind = std::move(titled.kind), .of = std::move(titled.of), .shape = std::move(titled.shape)};
  }

  Canary::Argument numbers(ArgumentId argument) const {
    return {argument == kConstants ? Passed::kConstants : Passed::kNumbers, first_[argument], length(argument)};
  }

  void write_calls() {
    if (!is_fused()) {
      canary_.table = options_.prefix + "table";
      write_offsets();
      for (const std::size_t function : chosen_)
        canary_.calls.push_back(
            {functions_[function].name, separate_arguments(functions_[function].signature), {output_of(function)}});
      return;
    }
    const bool is_batch = options_.layout == CanaryOptions::Layout::kBatch;
    canary_.copies = is_batch ? kCopies : 0;
    Canary::Call call{.function = options_.prefix + (is_batch ? "batch" : "fused")};
    if (is_batch) call.arguments.push_back({Passed::kInteger, kCopies, 0});
    for (const ArgumentId argument : {kU, kUt, kUx, kA, kAt, kAx, kX, kN, kConstants})
      call.arguments.push_back(numbers(argument));
    for (const std::size_t function : chosen_) {
      call.arguments.push_back({Passed::kOutput, static_cast<std::int64_t>(call.outputs.size()), 0});
      call.outputs.push_back(output_of(function));
    }
    canary_.calls.push_back(std::move(call));
  }

  // Where the fields begin in u, u_x, a and a_x, and where each ends.
  void write_offsets() {
    for (const auto* fields : {&problem_.fields, &problem_.aux_fields})
      for (const std::uint32_t width : {std::uint32_t{1}, problem_.dim}) {
        offsets_.push_back(static_cast<std::int64_t>(canary_.integers.size()));
        for (const Field& field : *fields) canary_.integers.push_back(std::int64_t{field.first} * width);
        canary_.integers.push_back(std::int64_t{total_components(*fields)} * width);
      }
  }

  std::vector<Canary::Argument> separate_arguments(Signature signature) const {
    std::vector<Canary::Argument> arguments;
    for (const Parameter& parameter : kParameters)
      if (has(signature, parameter) && parameter.type != Parameter::Type::kReal)
        arguments.push_back(argument_of(parameter.name));
    return arguments;
  }

  Canary::Argument argument_of(std::string_view parameter) const {
    const std::array<std::pair<std::string_view, Canary::Argument>, 18> known{{
        {"dim", {Passed::kInteger, problem_.dim, 0}},
        {"Nf", {Passed::kInteger, static_cast<std::int64_t>(problem_.fields.size()), 0}},
        {"NfAux", {Passed::kInteger, static_cast<std::int64_t>(problem_.aux_fields.size()), 0}},
        {"uOff", {Passed::kIntegers, offsets_[0], 0}},
        {"uOff_x", {Passed::kIntegers, offsets_[1], 0}},
        {"aOff", {Passed::kIntegers, offsets_[2], 0}},
        {"aOff_x", {Passed::kIntegers, offsets_[3], 0}},
        {"petsc_u", numbers(kU)},
        {"petsc_u_t", numbers(kUt)},
        {"petsc_u_x", numbers(kUx)},
        {"petsc_a", numbers(kA)},
        {"petsc_a_t", numbers(kAt)},
        {"petsc_a_x", numbers(kAx)},
        {"petsc_x", numbers(kX)},
        {"petsc_n", numbers(kN)},
        {"numConstants", {Passed::kInteger, length(kConstants), 0}},
        {"constants", numbers(kConstants)},
        {"out", {Passed::kOutput, 0, 0}},
    }};
    return std::ranges::find(known, parameter, &std::pair<std::string_view, Canary::Argument>::first)->second;
  }

  double constant(std::size_t slot) const { return slot < options_.constants.size() ? options_.constants[slot] : 0.0; }

  // First the solver's own material at moderate positive values, then other signs and constants near them, then
  // constants far from them; and again, ever larger and ever smaller.
  Canary::Point point(std::size_t index) {
    const std::size_t way = index % kWays;
    const std::size_t round = index / kWays;
    const std::size_t steps = (round + 1) / 2;
    const double octave = static_cast<double>(steps) * (round % 2 == 0 ? kOctaves : -kOctaves);
    const auto any = [&] {
      const double size = std::exp2(octave) * (way == 2 ? random_.between(0.125, 4) : random_.between(0.5, 1.5));
      return way == 1 && random_.between(0, 1) < 0.5 ? -size : size;
    };
    Canary::Point made;
    for (std::uint32_t i = 0; i < first_[kConstants]; ++i) made.numbers.push_back(any());
    for (std::size_t i = 0; i < length(kConstants); ++i) {
      const double near = constant(i) * (way == 0 ? 1 : random_.between(0.75, 1.25));
      made.numbers.push_back(way == 0 || (way == 1 && near != 0) ? near : random_.between(0.5, 1.5));
    }
    made.t = any();
    made.u_t_shift = any();
    return made;
  }

  std::vector<Bounded> values_at(const Canary::Point& point) const {
    return evaluate_bounded(problem_.graph, outputs_, [&](const Node& leaf) {
      if (leaf.argument == kT) return point.t;
      if (leaf.argument == kUtShift) return point.u_t_shift;
      return point.numbers[first_[leaf.argument] + leaf.args[0]];
    });
  }

  // One of each kind, and what shows an entry that no point has shown yet: many are zero, or too close to a kink to be
  // known, on one side of a yield limit.
  void add_points() {
    for (const std::size_t function : chosen_)
      outputs_.insert(outputs_.end(), functions_[function].outputs.begin(), functions_[function].outputs.end());
    std::vector<bool> is_shown(outputs_.size());
    for (std::size_t index = 0; index < kCandidates && canary_.points.size() < points_; ++index) {
      Canary::Point candidate = point(index);
      const std::vector<Bounded> values = values_at(candidate);
      bool shows_more = index < kWays;
      for (std::size_t i = 0; i < values.size(); ++i) {
        if (is_shown[i] || values[i].value == 0 || !std::isfinite(values[i].value) || std::isinf(values[i].bound))
          continue;
        is_shown[i] = shows_more = true;
      }
      if (shows_more) add(std::move(candidate), values);
    }
  }

  void add(Canary::Point point, const std::vector<Bounded>& values) {
    canary_.points.push_back(std::move(point));
    auto value = values.begin();
    std::size_t function = 0;
    for (Canary::Call& call : canary_.calls)
      for (Canary::Output& output : call.outputs)
        for (std::size_t i = functions_[chosen_[function++]].outputs.size(); i > 0; --i, ++value) {
          output.want.push_back(value->value);
          output.allowed.push_back(value->bound);
        }
  }

  const Problem& problem_;
  std::span<const PointwiseFunction> functions_;
  const CanaryOptions& options_;
  Random random_;
  std::array<std::uint32_t, kFirstOther> first_{};  // of each argument among a point's numbers; constants come last
  std::uint32_t numbers_ = 0;
  std::vector<std::int64_t> offsets_;  // uOff, uOff_x, aOff, aOff_x among the integers
  std::vector<std::size_t> chosen_;    // functions
  std::vector<NodeId> outputs_;        // theirs
  std::size_t points_ = 0;             // at most
  Canary canary_;
};

}  // namespace

Canary make_canary(const Problem& lowered, std::span<const PointwiseFunction> functions, const CanaryOptions& options) {
  const DefaultArithmetic arithmetic;
  return Maker(lowered, functions, options).make();
}

}  // namespace jitc::graph
