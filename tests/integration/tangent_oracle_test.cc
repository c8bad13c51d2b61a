// Every slot of every Jacobian block of the corpus against central differences of the residual functions it is the
// derivative of. The place of each slot is written out here, apart from the code under test: a block that is transposed
// in any way, or taken from another function or field, fails wherever the tangent is not symmetric.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "client/graph/evaluate.h"
#include "client/graph/import_json.h"

namespace jitc::graph {
namespace {

using nlohmann::json;

constexpr double kStep = 1e-6;
constexpr std::size_t kPoints = 4;

std::filesystem::path corpus() { return std::filesystem::path(JITC_SOURCE_DIR) / "tests/data/corpus"; }

std::vector<std::string> problems() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(corpus()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

std::string read(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Where functions are evaluated: the argument arrays by name, as the oracle writes them.
class Point {
 public:
  explicit Point(const json& in) {
    for (const char* name : {"u", "u_x", "a", "a_x", "x", "n", "constants"})
      if (in.contains(name))
        for (const auto& text : in[name])
          arrays_[name].push_back(std::strtod(text.get<std::string>().c_str(), nullptr));
    arrays_["t"] = {std::strtod(in["t"].get<std::string>().c_str(), nullptr)};
  }
  double& at(const std::string& array, std::size_t index) { return arrays_.at(array).at(index); }
  std::vector<double> evaluate_at(const Graph& graph, const std::vector<NodeId>& outputs) const {
    return evaluate(graph, outputs, [&](const Node& leaf) {
      const auto found = arrays_.find(std::string(graph.argument_name(leaf.argument)));
      return found == arrays_.end() ? 0.0 : found->second.at(leaf.args[0]);
    });
  }

 private:
  std::map<std::string, std::vector<double>> arrays_;
};

struct Differences {
  std::vector<double> slope;  // of each entry of the function
  double rounding = 0.0;      // what rounding alone can make of a slope
};

Differences differences(const Problem& problem, const Residual& function, const Point& point, const std::string& array,
                        std::size_t index) {
  Point moved = point;
  double& value = moved.at(array, index);
  const double centre = value;
  const double step = kStep * std::max(1.0, std::fabs(centre));
  value = centre + step;
  const auto above = moved.evaluate_at(problem.graph, function.entries);
  value = centre - step;
  const auto below = moved.evaluate_at(problem.graph, function.entries);
  Differences result;
  for (std::size_t i = 0; i < above.size(); ++i) {
    result.slope.push_back((above[i] - below[i]) / (2 * step));
    result.rounding = std::max(result.rounding, 1e-13 * (std::fabs(above[i]) + std::fabs(below[i])) / step);
  }
  return result;
}

// The slots of a block as PETSc states them, one kind at a time.
std::size_t slot(Kind kind, std::size_t trials, std::size_t dim, std::size_t fc, std::size_t gc, std::size_t df,
                 std::size_t dg) {
  switch (kind) {
    case Kind::kG0:
      return fc * trials + gc;
    case Kind::kG1:
      return (fc * trials + gc) * dim + dg;
    case Kind::kG2:
      return (fc * trials + gc) * dim + df;
    default:
      return ((fc * trials + gc) * dim + df) * dim + dg;
  }
}

class TangentOracle : public testing::TestWithParam<std::string> {};

void compare(const Problem& problem, const Block& block, const std::vector<double>& entries, const Point& point) {
  const bool of_flux = block.kind == Kind::kG2 || block.kind == Kind::kG3;
  const bool by_gradient = block.kind == Kind::kG1 || block.kind == Kind::kG3;
  const auto function = std::ranges::find_if(problem.residuals, [&](const Residual& residual) {
    return residual.field == block.test && residual.kind == (of_flux ? Kind::kF1 : Kind::kF0);
  });
  ASSERT_NE(function, problem.residuals.end());
  const Field& trial = problem.fields[block.trial];
  const std::size_t tests = problem.fields[block.test].components;
  const std::size_t dim = problem.dim;
  double largest = 0.0;
  for (const double entry : entries) largest = std::max(largest, std::fabs(entry));
  std::vector<bool> seen(entries.size());
  for (std::size_t gc = 0; gc < trial.components; ++gc) {
    for (std::size_t dg = 0; dg < (by_gradient ? dim : 1); ++dg) {
      const std::size_t component = trial.first + gc;
      const auto wanted = by_gradient ? differences(problem, *function, point, "u_x", component * dim + dg)
                                      : differences(problem, *function, point, "u", component);
      for (std::size_t fc = 0; fc < tests; ++fc) {
        for (std::size_t df = 0; df < (of_flux ? dim : 1); ++df) {
          const std::size_t at = slot(block.kind, trial.components, dim, fc, gc, df, dg);
          ASSERT_LT(at, entries.size());
          seen[at] = true;
          EXPECT_NEAR(entries[at], wanted.slope[of_flux ? fc * dim + df : fc], 1e-5 * largest + wanted.rounding)
              << block.name << "[" << at << "]";
        }
      }
    }
  }
  EXPECT_EQ(std::ranges::count(seen, true), std::ssize(seen)) << block.name;
}

TEST_P(TangentOracle, EverySlotIsTheSlopeOfItsFunction) {
  auto problem = import_json(read(corpus() / GetParam() / "problem.json"));
  ASSERT_TRUE(problem) << common::to_line(problem.error());
  const auto functions = lower(*problem);
  ASSERT_TRUE(functions) << common::to_line(functions.error());
  const auto oracle = json::parse(read(corpus() / GetParam() / "oracle.json"));
  std::size_t points = 0;
  for (const auto& entry : oracle["points"]) {
    if (entry["kind"] != "regular" || points == kPoints) continue;
    ++points;
    const Point point(entry["in"]);
    for (std::size_t i = 0; i < problem->blocks.size(); ++i) {
      const auto& lowered = (*functions)[problem->residuals.size() + i];
      compare(*problem, problem->blocks[i], point.evaluate_at(problem->graph, lowered.outputs), point);
    }
  }
  EXPECT_EQ(points, kPoints);
}

INSTANTIATE_TEST_SUITE_P(Corpus, TangentOracle, testing::ValuesIn(problems()),
                         [](const auto& problem) { return problem.param; });

}  // namespace
}  // namespace jitc::graph
