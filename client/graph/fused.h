// All functions of a point in one C function, for callers that are not PETSc: what they have in common is computed
// once, across all of them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "client/graph/emit.h"
#include "client/graph/graph.h"
#include "common/error.h"

namespace jitc::graph {

struct FusedOptions {
  Sharing sharing = Sharing::kShared;
  bool lazy_arms = false;
  // A loop over points, arrays with one row a component: see emit_fused.
  bool batch = false;
};

// One translation unit with
//   void NAME(const double *u, const double *u_t, const double *u_x, const double *a, const double *a_t,
//             const double *a_x, double t, double u_tShift, const double *x, const double *n, const double *constants,
//             const double *OTHER..., double *out_FUNCTION...)
// where OTHER are the arguments beyond PETSc's that the functions use, by name, and out_FUNCTION[i] is output i of each
// function in the order given. No array may overlap an output; those that no function uses may be NULL. Signatures and
// groups of the functions are not looked at.
//
// With `batch` the first parameter is `long points`, and u[i * points + p] belongs to point p: so for every array but
// `constants`, outputs included.
//
// Fails (kInvalidSource, kUsage) on names that C or the text cannot take, on trees above kTreeLimit and a full graph.
common::Result<std::string> emit_fused(const Graph& graph, std::string_view name,
                                       std::span<const PointwiseFunction> functions, const FusedOptions& options,
                                       EmitStatistics* statistics = nullptr);

}  // namespace jitc::graph
