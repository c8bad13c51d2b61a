// C99 from a graph: deterministic, independent of locale, ids and names; nothing is included but math.h. What is
// printed is specified in docs/graph.md.
//
// Literals round-trip (shortest decimal) and are never named. Named nodes become one temporary each. max is
// `a > b || b != b ? a : b` (min alike): the larger, a NaN is ignored, the second of two zeros wins.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "client/graph/graph.h"
#include "common/error.h"

namespace jitc::graph {

// Changes whenever the printed text of some graph changes: part of every request digest.
inline constexpr std::uint32_t kEmitterVersion = 3;

// Stands once in front of every text that is printed here or by share(). Where stores that lie side by side take a sum
// and a difference of products in turn, gcc's vectoriser of straight-line code makes vfmaddsub of them even with
// -ffp-contract=off (seen in gcc 12): then results depend on which statements happen to be vectorised together. Loops
// are still vectorised; those of emit_fused keep the same operation in all lanes.
inline constexpr std::string_view kContractionGuard =
    "#if defined(__GNUC__) && !defined(__clang__) && !defined(__INTEL_COMPILER)\n"
    "#pragma GCC optimize(\"no-tree-slp-vectorize\")\n"
    "#endif\n";

enum class Sharing : std::uint8_t {
  kTrees,   // every output as one expression (named nodes excepted); an error above kTreeLimit bytes
  kShared,  // what is used more than once is computed once
  kAuto,    // trees while their text is at most 1.5 times the shared one
};
inline constexpr std::size_t kTreeLimit = std::size_t{64} << 20;

enum class Signature : std::uint8_t { kResidual, kJacobian, kBoundaryResidual, kBoundaryJacobian };

struct PointwiseFunction {
  std::string name;
  Signature signature = Signature::kResidual;
  std::vector<NodeId> outputs;  // out[i], flat
  std::string group;            // "residual", "bcs", ... of the table of functions: see docs/graph.md
};

// Are all its outputs identically zero?
bool is_zero(const Graph& graph, const PointwiseFunction& function);

enum class Types : std::uint8_t {
  kPetsc,  // PetscInt, PetscReal, PetscScalar, as typedefs that the text itself prints
  kPlain,  // int (or 64-bit) and double
};

struct EmitOptions {
  Sharing sharing = Sharing::kAuto;
  Types types = Types::kPetsc;
  std::uint32_t int_bits = 32;  // of PetscInt: 32 or 64
  bool complex_scalar = false;  // refused: kUsage with a clear text
  // Offsets of u and u_x (a and a_x) are read from uOff, uOff_x (aOff, aOff_x) instead of being baked in. Needs
  // `field_first` (`aux_first`): the component at which each field begins in u (a), ascending.
  bool runtime_offsets = false;
  std::vector<std::uint32_t> field_first;
  std::vector<std::uint32_t> aux_first;
  std::uint32_t dim = 2;
  bool lazy_arms = false;  // nothing that only an arm of a select needs is computed outside that arm (60 arms deep)
  std::string prefix;      // of all symbols
  bool skip_zero = false;  // functions whose outputs are all identically zero are left out (NULL in the table)
  bool table = false;      // the exported symbol <prefix>table: see docs/graph.md
};

struct EmitStatistics {
  std::size_t nodes = 0;  // distinct, of all functions
  std::size_t temporaries = 0;
  std::size_t tree_nodes = 0;  // of the expanded expressions; saturates
};

// One translation unit. Fails (kUsage) when a tree is above the limit or an option cannot be had, naming the function,
// and when the graph is full; (kInvalidSource) on names that C cannot take.
common::Result<std::string> emit(const Graph& graph, std::span<const PointwiseFunction> functions,
                                 const EmitOptions& options, EmitStatistics* statistics = nullptr);

// ---- for texts with other signatures -------------------------------------------------------------------------------

struct Output {
  NodeId value;
  std::string target;  // "out[3]"
};

struct BodyOptions {
  Sharing sharing = Sharing::kShared;
  bool lazy_arms = false;
  std::string indent = "  ";
  std::string temporary = "t";  // prefix of the names of temporaries; must not collide with a leaf's spelling
  // How a leaf is written: always the same, a name, an element or a cast of one.
  std::function<std::string(const Node& leaf)> spell;
};

// The statements that compute the outputs: temporaries, then one assignment each. Helper functions used by the text are
// those of `helpers`.
common::Result<std::string> emit_body(const Graph& graph, std::span<const Output> outputs, const BodyOptions& options,
                                      EmitStatistics* statistics = nullptr);
// Definitions of the static inline helpers (jitc_max, jitc_min, jitc_sign, jitc_heaviside) and declarations of the
// opaque functions that the outputs use.
std::string helpers(const Graph& graph, std::span<const NodeId> outputs);

}  // namespace jitc::graph
