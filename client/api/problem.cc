#include "client/api/problem.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <new>
#include <span>

#include "client/graph/import_json.h"
#include "common/digest.h"

using namespace jitc;
using common::ErrorKind;
using common::Result;

static_assert(JITC_G3 == static_cast<int>(graph::Kind::kG3));
static_assert(JITC_CONTINUATION == static_cast<int>(graph::Tangent::kContinuation));

namespace jitc::api {

Result<Lowered> lower_copy(const graph::Problem& problem) {
  Lowered lowered{problem, {}};
  Result<std::vector<graph::PointwiseFunction>> functions = graph::lower(lowered.problem);
  if (!functions) return std::unexpected(std::move(functions.error()));
  lowered.functions = std::move(*functions);
  return lowered;
}

namespace {

constexpr std::size_t kShownDigits = 16;  // of a function's digest

void describe_function(std::string& text, const graph::Graph& graph, const std::string& name,
                       const std::vector<graph::NodeId>& entries) {
  common::Hasher hasher("jitc function 1");
  hasher.list("entries", entries.size());
  for (const graph::NodeId entry : entries) hasher.number("entry", graph.content(entry));
  text += name + " " + hasher.finish().hex().substr(0, kShownDigits) + "\n";
}

}  // namespace

std::string describe(const graph::Problem& given) {
  const graph::Problem problem = graph::in_slot_order(given);
  std::string text = "jitc problem 1\ndim " + std::to_string(problem.dim) + "\n";
  for (const graph::Field& field : problem.fields) text += "field " + std::to_string(field.components) + "\n";
  for (const graph::Field& field : problem.aux_fields) text += "aux field " + std::to_string(field.components) + "\n";
  text += "constants " + std::to_string(problem.constants.size()) + "\n";
  for (const graph::Residual& residual : problem.residuals)
    describe_function(text, problem.graph, residual.name, residual.entries);
  for (const graph::Block& block : problem.blocks) describe_function(text, problem.graph, block.name, block.entries);
  return text + "digest " + common::sha256(graph::canonical_bytes(given)).hex() + "\n";
}

namespace {

Result<std::string> text_of(const char* text, const char* what) {
  if (text) return text;
  return common::fail(ErrorKind::kUsage, "no text was given", what);
}

Result<std::uint32_t> add_field(std::vector<graph::Field>& fields, const char* name, std::uint32_t components) {
  auto text = text_of(name, "name of a field");
  if (!text) return std::unexpected(std::move(text.error()));
  const std::uint32_t first = fields.empty() ? 0 : fields.back().first + fields.back().components;
  fields.push_back({std::move(*text), components, first});
  return static_cast<std::uint32_t>(fields.size() - 1);
}

Result<std::vector<graph::NodeId>> entries_of(const graph::Graph& graph, const jitc_node* entries, std::size_t count) {
  if (!entries && count > 0) return null_pointer("entries");
  for (std::size_t i = 0; i < count; ++i)
    if (entries[i] >= graph.size())
      return common::fail(ErrorKind::kUsage, "it is no node of this problem", "entry " + std::to_string(i));
  return std::vector<graph::NodeId>(entries, entries + count);
}

template <class Enum>
Result<Enum> enumerator(int value, Enum last, const char* what) {
  if (value >= 0 && value <= static_cast<int>(last)) return static_cast<Enum>(value);
  return common::fail(ErrorKind::kUsage, std::to_string(value) + " is none of its values", what);
}

Result<double> number_of(std::string_view text, const char* option) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return common::fail(ErrorKind::kUsage, "'" + std::string(text) + "' is not a number", option);
}

Result<std::uint32_t> set_option(graph::Problem& problem, std::string_view option, std::string_view value) {
  if (option == "ties" && (value == "half" || value == "first")) {
    problem.ties = value == "half" ? graph::Ties::kHalf : graph::Ties::kFirst;
  } else if (option == "sort_constants" && (value == "0" || value == "1")) {
    problem.sort_constants = value == "1";
  } else if (option == "guard") {
    const Result<double> epsilon = number_of(value, "guard");
    if (!epsilon) return std::unexpected(epsilon.error());
    problem.guard = *epsilon;
  } else if (option == "origin") {
    problem.origins.begin(static_cast<graph::NodeId>(problem.graph.size()), value);
  } else if (option == "ties" || option == "sort_constants") {
    return common::fail(ErrorKind::kUsage, "'" + std::string(value) + "' is not a value of this option",
                        std::string(option), option == "ties" ? "use half or first" : "use 0 or 1");
  } else {
    return common::fail(ErrorKind::kUsage, "there is no such option", "'" + std::string(option) + "'",
                        "the options are ties, guard, sort_constants and origin");
  }
  return 0;
}

Result<std::uint32_t> add_block(graph::Problem& problem, const jitc_block& given) {
  graph::Block block;
  auto name = text_of(given.name, "name of a block");
  if (!name) return std::unexpected(std::move(name.error()));
  block.name = std::move(*name);
  const auto kind = enumerator(given.kind, graph::Kind::kG3, "kind");
  if (!kind) return std::unexpected(kind.error());
  const auto tangent = enumerator(given.tangent, graph::Tangent::kContinuation, "tangent");
  if (!tangent) return std::unexpected(tangent.error());
  auto entries = entries_of(problem.graph, given.entries, given.entries ? given.entry_count : 0);
  if (!entries) return std::unexpected(std::move(entries.error()));
  block.kind = *kind;
  block.test = given.test;
  block.trial = given.trial;
  block.boundary = given.boundary != 0;
  block.entries = std::move(*entries);
  block.tangent = *tangent;
  block.continuation = given.continuation;
  if (!given.frozen && given.frozen_count > 0) return null_pointer("frozen");
  for (std::size_t i = 0; i < given.frozen_count; ++i) {
    auto frozen = text_of(given.frozen[i], "name of a frozen node");
    if (!frozen) return std::unexpected(std::move(frozen.error()));
    block.frozen.push_back(std::move(*frozen));
  }
  problem.blocks.push_back(std::move(block));
  return 0;
}

Result<std::uint32_t> declare(graph::Graph& graph, graph::Function function) {
  const auto usage = [&function](std::string message) {
    return common::fail(ErrorKind::kUsage, std::move(message), "function '" + function.name + "'");
  };
  for (graph::FunctionId id = 0; id < graph.function_count(); ++id)
    if (graph.function(id).name == function.name && graph.function(id).arity != function.arity)
      return usage("it was declared with " + std::to_string(graph.function(id).arity) + " arguments, not " +
                   std::to_string(function.arity));
  for (const std::optional<graph::FunctionId>& partial : function.partials) {
    if (!partial) continue;
    if (*partial >= graph.function_count()) return usage("a partial derivative is no declared function");
    if (graph.function(*partial).arity != function.arity)
      return usage("its partial derivative '" + graph.function(*partial).name + "' has not the same arguments");
  }
  return graph.declare(std::move(function));
}

jitc_function_info info_of(const graph::Problem& problem, std::size_t index) {
  if (index < problem.residuals.size()) {
    const graph::Residual& residual = problem.residuals[index];
    return {sizeof(jitc_function_info),
            residual.name.c_str(),
            static_cast<jitc_function_kind>(residual.kind),
            residual.field,
            JITC_NONE,
            residual.boundary,
            residual.entries.size()};
  }
  const graph::Block& block = problem.blocks[index - problem.residuals.size()];
  return {sizeof(jitc_function_info),
          block.name.c_str(),
          static_cast<jitc_function_kind>(block.kind),
          block.test,
          block.trial,
          block.boundary,
          graph::size_of(problem, block)};
}

}  // namespace
}  // namespace jitc::api

// ---- jitc_problem ---------------------------------------------------------------------------------------------------

jitc_problem::jitc_problem(graph::Problem problem) : problem_(std::make_shared<graph::Problem>(std::move(problem))) {
  for (const graph::Constant& constant : problem_->constants) values_.push_back(constant.value);
}

graph::Problem& jitc_problem::edit() {
  if (is_shared_) problem_ = std::make_shared<graph::Problem>(*problem_);
  is_shared_ = false;
  lowered_.reset();
  description_.reset();
  return *problem_;
}

std::shared_ptr<const graph::Problem> jitc_problem::share() {
  is_shared_ = true;
  return problem_;
}

void jitc_problem::take_back() {
  if (problem_.use_count() != 1) return;
  std::atomic_thread_fence(std::memory_order_acquire);  // after what the last other holder did
  is_shared_ = false;
}

Result<void> jitc_problem::check() const {
  if (error_) return std::unexpected(*error_);
  return graph::check(*problem_);
}

Result<const api::Lowered*> jitc_problem::lowered() const {
  if (!lowered_) {
    if (auto checked = check(); !checked) return std::unexpected(std::move(checked.error()));
    Result<api::Lowered> made = api::lower_copy(*problem_);
    if (!made) return std::unexpected(std::move(made.error()));
    lowered_ = std::make_unique<api::Lowered>(std::move(*made));
  }
  return lowered_.get();
}

Result<const std::string*> jitc_problem::description() const {
  if (!description_) {
    if (auto checked = check(); !checked) return std::unexpected(std::move(checked.error()));
    description_ = api::describe(*problem_);
  }
  return &*description_;
}

const common::SharedRequest& jitc_problem::asked(common::Request request) {
  if (!asked_ || **asked_ != request) asked_.emplace(std::move(request));
  return *asked_;
}

void jitc_problem::fail(std::string_view call, common::Error error) noexcept {
  if (error_) return;
  try {
    std::string thing(call);
    if (!error.thing.empty()) thing += ": " + error.thing;
    thing += ", in problem '" + problem_->name + "'";
    if (const std::string_view origin = problem_->origins.latest(); !origin.empty())
      thing.append(" at ").append(origin);
    error.thing = std::move(thing);
    error_ = std::move(error);
  } catch (const std::bad_alloc&) {
    error_ = common::Error{ErrorKind::kInternal, "no memory", {}, {}};  // short enough to need none
  }
}

// ---- the C interface ------------------------------------------------------------------------------------------------

jitc_problem* jitc_problem_open(const char* name, uint32_t dim) {
  try {
    graph::Problem problem;
    problem.name = name ? name : "";
    problem.dim = dim;
    return new jitc_problem(std::move(problem));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

jitc_kind jitc_problem_from_json(const char* text, size_t length, jitc_problem** problem, jitc_error** error) {
  if (problem) *problem = nullptr;
  return api::attempt(error, [&]() -> Result<void> {
    if (!text || !problem) return api::null_pointer("jitc_problem_from_json");
    Result<graph::Problem> made = graph::import_json({text, length ? length : std::strlen(text)});
    if (!made) return std::unexpected(std::move(made.error()));
    *problem = new jitc_problem(std::move(*made));
    return {};
  });
}

void jitc_problem_free(jitc_problem* problem) { delete problem; }

void jitc_problem_set(jitc_problem* problem, const char* option, const char* value) {
  api::build(problem, "jitc_problem_set", [&](graph::Problem& edited) -> Result<std::uint32_t> {
    if (!option || !value) return api::null_pointer("option");
    return api::set_option(edited, option, value);
  });
}

int jitc_problem_has_failed(const jitc_problem* problem) { return !problem || problem->has_failed(); }

jitc_kind jitc_problem_check(const jitc_problem* problem, jitc_error** error) {
  return api::attempt(error, [&]() -> Result<void> {
    if (!problem) return api::null_pointer("jitc_problem_check");
    return problem->check();
  });
}

uint32_t jitc_problem_field(jitc_problem* problem, const char* name, uint32_t components) {
  return api::build(problem, "jitc_problem_field",
                    [&](graph::Problem& edited) { return api::add_field(edited.fields, name, components); });
}

uint32_t jitc_problem_aux_field(jitc_problem* problem, const char* name, uint32_t components) {
  return api::build(problem, "jitc_problem_aux_field",
                    [&](graph::Problem& edited) { return api::add_field(edited.aux_fields, name, components); });
}

uint32_t jitc_problem_constant(jitc_problem* problem, const char* name, double value) {
  return api::build(problem, "jitc_problem_constant", [&](graph::Problem& edited) -> Result<std::uint32_t> {
    auto text = api::text_of(name, "name of a constant");
    if (!text) return std::unexpected(std::move(text.error()));
    edited.constants.push_back({std::move(*text), value});
    problem->values().push_back(value);
    return static_cast<std::uint32_t>(edited.constants.size() - 1);
  });
}

void jitc_problem_set_constant(jitc_problem* problem, uint32_t constant, double value) {
  if (!problem || problem->has_failed()) return;
  if (constant < problem->values().size()) {
    problem->values()[constant] = value;
  } else {
    problem->fail("jitc_problem_set_constant", {ErrorKind::kUsage, "there is no such constant", {}, {}});
  }
}

size_t jitc_problem_constants(const jitc_problem* problem, double* values, size_t capacity) {
  if (!problem) return 0;
  const std::vector<double>& all = problem->values();
  if (!values || capacity == 0) return all.size();
  try {
    const std::vector<std::uint32_t> slots = graph::constant_slots(problem->problem());
    for (std::size_t i = 0; i < all.size(); ++i)
      if (slots[i] < capacity) values[slots[i]] = all[i];
  } catch (const std::bad_alloc&) {
    return 0;
  }
  return all.size();
}

uint32_t jitc_problem_function(jitc_problem* problem, const char* name, uint32_t arity, const uint32_t* partials) {
  return api::build(problem, "jitc_problem_function", [&](graph::Problem& edited) -> Result<std::uint32_t> {
    auto text = api::text_of(name, "name of a function");
    if (!text) return std::unexpected(std::move(text.error()));
    graph::Function function{std::move(*text), arity, {}};
    if (partials) {
      for (std::uint32_t i = 0; i < arity; ++i)
        function.partials.push_back(partials[i] == JITC_NONE ? std::nullopt : std::optional(partials[i]));
    }
    return api::declare(edited.graph, std::move(function));
  });
}

void jitc_problem_residual(jitc_problem* problem, const char* name, jitc_function_kind kind, uint32_t field,
                           int boundary, const jitc_node* entries, size_t count) {
  api::build(problem, "jitc_problem_residual", [&](graph::Problem& edited) -> Result<std::uint32_t> {
    auto text = api::text_of(name, "name of a residual");
    if (!text) return std::unexpected(std::move(text.error()));
    const auto known = api::enumerator(kind, graph::Kind::kF1, "kind");
    if (!known) return std::unexpected(known.error());
    auto nodes = api::entries_of(edited.graph, entries, count);
    if (!nodes) return std::unexpected(std::move(nodes.error()));
    edited.residuals.push_back({std::move(*text), *known, field, boundary != 0, std::move(*nodes)});
    return 0;
  });
}

void jitc_problem_block(jitc_problem* problem, const jitc_block* block) {
  api::build(problem, "jitc_problem_block", [&](graph::Problem& edited) -> Result<std::uint32_t> {
    if (!block) return api::null_pointer("block");
    return api::add_block(edited, api::from_sized(block));
  });
}

size_t jitc_problem_function_count(const jitc_problem* problem) {
  return problem ? problem->problem().residuals.size() + problem->problem().blocks.size() : 0;
}

jitc_kind jitc_problem_function_info(const jitc_problem* problem, size_t index, jitc_function_info* info,
                                     jitc_error** error) {
  return api::attempt(error, [&]() -> Result<void> {
    if (!problem || !info) return api::null_pointer("jitc_problem_function_info");
    if (auto checked = problem->check(); !checked) return checked;
    if (index >= jitc_problem_function_count(problem))
      return common::fail(ErrorKind::kUsage, "there is no such function", "function " + std::to_string(index));
    jitc_function_info whole = api::info_of(problem->problem(), index);
    whole.size = std::min(info->size, sizeof whole);
    std::copy_n(reinterpret_cast<const unsigned char*>(&whole), whole.size, reinterpret_cast<unsigned char*>(info));
    return {};
  });
}
