// What jitc_problem is: a graph::Problem that is being built, with the first error that this met.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/api/handles.h"
#include "client/graph/problem.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::api {

// A problem with all derivatives taken; the functions' outputs are nodes of its graph.
struct Lowered {
  graph::Problem problem;
  std::vector<graph::PointwiseFunction> functions;
};
common::Result<Lowered> lower_copy(const graph::Problem& problem);

// What stands for a checked problem in a request digest. Its lines tell people which function differs between two
// ranks; the last one decides.
std::string describe(const graph::Problem& problem);

}  // namespace jitc::api

struct jitc_problem {
 public:
  explicit jitc_problem(jitc::graph::Problem problem);

  // The values of its constants are out of date: see values().
  const jitc::graph::Problem& problem() const { return *problem_; }
  // Of the constants, in order of creation. They are no part of what is shared or kept: changing one costs nothing.
  std::vector<double>& values() { return values_; }
  const std::vector<double>& values() const { return values_; }
  // For changes. What share() gave out stays as it was.
  jitc::graph::Problem& edit();
  // As it is now, for a helper thread that may outlive this object.
  std::shared_ptr<const jitc::graph::Problem> share();
  // Nobody else is expected to hold it any more: spares a copy at the next change if that is so.
  void take_back();

  // The first error of building, else what graph::check says.
  jitc::common::Result<void> check() const;
  // Of the checked problem as it is now; both are kept until it is changed.
  jitc::common::Result<const jitc::api::Lowered*> lowered() const;
  jitc::common::Result<const std::string*> description() const;

  // What is asked for when a module is made of it; while that is the same its digest is not made again.
  const jitc::common::SharedRequest& asked(jitc::common::Request request);

  bool has_failed() const { return error_.has_value(); }
  // `call` and the origin in force are added to the error.
  void fail(std::string_view call, jitc::common::Error error) noexcept;

 private:
  std::shared_ptr<jitc::graph::Problem> problem_;
  std::vector<double> values_;
  bool is_shared_ = false;
  std::optional<jitc::common::Error> error_;
  mutable std::unique_ptr<jitc::api::Lowered> lowered_;
  mutable std::optional<std::string> description_;
  std::optional<jitc::common::SharedRequest> asked_;
};

namespace jitc::api {

// A building call. `body(problem)` gives a Result of an index or node; after its error, or an earlier one: JITC_NONE.
template <class Body>
std::uint32_t build(jitc_problem* problem, const char* call, const Body& body) noexcept {
  if (!problem || problem->has_failed()) return JITC_NONE;
  try {
    common::Result<std::uint32_t> made = body(problem->edit());
    if (made) return *made;
    problem->fail(call, std::move(made.error()));
  } catch (...) {  // the ABI carries no exceptions
    problem->fail(call, failure_of_exception().error);
  }
  return JITC_NONE;
}

}  // namespace jitc::api
