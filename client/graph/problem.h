// What a solver states: fields, constants, residual functions and the Jacobian blocks it wants; and its lowering to
// functions ready to be printed. Layout and signatures are PETSc's (PetscDSSetResidual, PetscDSSetJacobian).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/graph/derivative.h"
#include "client/graph/emit.h"
#include "client/graph/graph.h"
#include "client/graph/origins.h"
#include "common/error.h"

namespace jitc::graph {

// Components of one problem are counted below this.
inline constexpr std::uint32_t kLastComponent = std::uint32_t{1} << 24;

struct Field {
  std::string name;
  std::uint32_t components = 1;
  std::uint32_t first = 0;  // index of component 0 in u (a); its gradient begins at first * dim in u_x (a_x)
};

enum class Kind : std::uint8_t { kF0, kF1, kG0, kG1, kG2, kG3 };

// f0[fc] or f1[fc * dim + df] of one field.
struct Residual {
  std::string name;  // of the C function
  Kind kind = Kind::kF0;
  std::uint32_t field = 0;
  bool boundary = false;  // has the normal n
  std::vector<NodeId> entries;
};

// How a block's expressions are treated before and while they are differentiated.
enum class Tangent : std::uint8_t {
  kNewton,        // named nodes are seen through, unless listed as frozen
  kPicard,        // all named nodes are held fixed
  kContinuation,  // picard + c * (newton - picard), c a constant
};

// g0[fc*Ng+gc] = df0[fc]/du[gc], g1[(fc*Ng+gc)*dim+dg] = df0[fc]/du_x[gc,dg], g2[(fc*Ng+gc)*dim+df] =
// df1[fc,df]/du[gc], g3[((fc*Ng+gc)*dim+df)*dim+dg] = df1[fc,df]/du_x[gc,dg]; fc runs over the test field, gc over the
// trial field.
struct Block {
  std::string name;
  Kind kind = Kind::kG0;
  std::uint32_t test = 0;
  std::uint32_t trial = 0;
  bool boundary = false;
  // Given entries in that layout instead of derivatives: preconditioner blocks such as 1/viscosity.
  std::vector<NodeId> entries;
  Tangent tangent = Tangent::kNewton;
  std::uint32_t continuation = 0;  // constant, in order of creation
  std::vector<std::string> frozen;
};

// A slot of constants[]: its value is packed by the solver at run time and is never part of the source.
struct Constant {
  std::string name;
  double value = 0.0;
};

struct Problem {
  std::string name;
  std::uint32_t dim = 2;
  std::vector<Field> fields;
  std::vector<Field> aux_fields;
  std::vector<Constant> constants;  // in order of creation; leaf kConstants[i] is constants[i]
  // Slots in order of (name, creation) rather than of creation: then the source does not depend on the order in which
  // constants were created, as long as names differ.
  bool sort_constants = false;
  std::vector<Residual> residuals;
  std::vector<Block> blocks;
  Ties ties = Ties::kHalf;
  double guard = 0.0;  // see guard_half_powers; applied before differentiating, 0: off
  Graph graph;
  Origins origins;  // of the nodes, for errors
};

// ---- layout ---------------------------------------------------------------------------------------------------------

bool is_residual(Kind kind);                                       // f0, f1
bool differentiates_flux(Kind kind);                               // g2, g3: of f1
bool differentiates_by_gradient(Kind kind);                        // g1, g3: by u_x
std::uint32_t total_components(const std::vector<Field>& fields);  // the length of u (a)
// The length of an argument array; nothing for what is no pointwise argument.
std::optional<std::uint32_t> length_of(const Problem& problem, ArgumentId argument);
std::size_t size_of(const Problem& problem, const Residual& residual);
std::size_t size_of(const Problem& problem, const Block& block);
// Index of the residual function that a block without given entries is a derivative of.
common::Result<std::size_t> source_of(const Problem& problem, const Block& block);

// ---- constants ------------------------------------------------------------------------------------------------------

// Slot of each constant, by order of creation.
std::vector<std::uint32_t> constant_slots(const Problem& problem);
// The layout of constants[] as JSON text: [{"slot":0,"name":"n"},...]. Two constants of one name stay two.
std::string constants_manifest(const Problem& problem);
// The problem with its constants in order of slots, in the graph and the blocks too. Its nodes have other ids.
Problem in_slot_order(const Problem& problem);

// ---- what is done with a problem ------------------------------------------------------------------------------------

// Sizes, indices and kinds agree: everything that lowering relies on. Errors (kInvalidSource) name the function, the
// entry, the node and its origin.
common::Result<void> check(const Problem& problem);
// All residual functions, then all blocks, in order, derivatives taken; outputs are nodes of problem.graph. Afterwards
// the constants are in order of slots. Fails (kInvalidSource) as check() does, and on derivatives that do not exist.
common::Result<std::vector<PointwiseFunction>> lower(Problem& problem);
// What the lowering of a checked problem depends on, and nothing else, as bytes for a digest: equal for equal
// mathematics and layout, whatever fields, constants and expressions are called and in which order they were built.
std::string canonical_bytes(const Problem& problem);

}  // namespace jitc::graph
