#include "client/graph/import_json.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "client/graph/json_tape.h"
#include "client/graph/operators.h"
#include "client/graph/parse_number.h"
#include "client/graph/shown.h"

namespace jitc::graph {
namespace {

using common::Error;
using common::ErrorKind;
using common::Result;

constexpr std::string_view kFormat = "jitc-corpus-problem-1";

std::unexpected<Error> fail(std::string message, std::string thing, std::string remedy = {}) {
  return common::fail(ErrorKind::kInvalidSource, std::move(message), std::move(thing), std::move(remedy));
}

std::string quoted(std::string_view text) { return "'" + shown(text) + "'"; }

// ---- the parts of an object -----------------------------------------------------------------------------------------

// An object of the text and what it is called in errors.
struct Part {
  JsonValue value;
  std::string name;

  std::unexpected<Error> wrong(std::string_view key, std::string_view needed) const {
    return fail((value.find(key) ? quoted(key) + " must be " : quoted(key) + " is missing: ") + std::string(needed),
                name);
  }
  Result<std::string_view> text(std::string_view key) const {
    const auto found = value.find(key);
    if (const auto text = found ? found->text() : std::nullopt) return *text;
    return wrong(key, "a string");
  }
  Result<std::uint32_t> index(std::string_view key) const {
    const auto found = value.find(key);
    if (const auto index = found ? found->index() : std::nullopt) return *index;
    return wrong(key, "an integer from 0 on");
  }
  Result<JsonValue> array(std::string_view key) const {
    const auto found = value.find(key);
    if (found && found->is_array()) return *found;
    return wrong(key, "an array");
  }
  // The array's values by `read`, or nothing when it is left out.
  template <class Read>
  Result<void> each(std::string_view key, bool is_needed, Read read) const {
    if (!is_needed && !value.find(key)) return {};
    const auto found = array(key);
    if (!found) return std::unexpected(found.error());
    std::size_t i = 0;
    const std::string before = (name.empty() ? "" : name + ".") + std::string(key) + "[";
    for (const JsonValue item : *found)
      if (Result<void> done = read(Part{item, before + std::to_string(i++) + "]"}); !done) return done;
    return {};
  }
};

// One of some words.
template <class T, std::size_t kCount>
Result<T> choice(const Part& part, std::string_view key,
                 const std::array<std::pair<std::string_view, T>, kCount>& words) {
  const auto given = part.text(key);
  if (!given) return std::unexpected(given.error());
  std::string allowed;
  for (const auto& [word, value] : words) {
    if (word == *given) return value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(word);
  }
  return fail(quoted(key) + " is " + quoted(*given) + ", not one of: " + allowed, part.name);
}

constexpr auto kResidualKinds =
    std::to_array<std::pair<std::string_view, Kind>>({{"f0", Kind::kF0}, {"f1", Kind::kF1}});
constexpr auto kBlockKinds = std::to_array<std::pair<std::string_view, Kind>>(
    {{"g0", Kind::kG0}, {"g1", Kind::kG1}, {"g2", Kind::kG2}, {"g3", Kind::kG3}});
constexpr auto kPlaces = std::to_array<std::pair<std::string_view, bool>>({{"volume", false}, {"boundary", true}});
constexpr auto kTangents = std::to_array<std::pair<std::string_view, Tangent>>(
    {{"newton", Tangent::kNewton}, {"picard", Tangent::kPicard}, {"continuation", Tangent::kContinuation}});
constexpr auto kTieRules =
    std::to_array<std::pair<std::string_view, Ties>>({{"half", Ties::kHalf}, {"first", Ties::kFirst}});

// A leaf's argument, and how many indices it has.
struct LeafName {
  ArgumentId argument;
  std::uint32_t indices;
};
constexpr auto kLeaves = std::to_array<std::pair<std::string_view, LeafName>>({{"u", {kU, 1}},
                                                                               {"u_t", {kUt, 1}},
                                                                               {"u_x", {kUx, 2}},
                                                                               {"a", {kA, 1}},
                                                                               {"a_t", {kAt, 1}},
                                                                               {"a_x", {kAx, 2}},
                                                                               {"t", {kT, 0}},
                                                                               {"u_tShift", {kUtShift, 0}},
                                                                               {"x", {kX, 1}},
                                                                               {"n", {kN, 1}},
                                                                               {"constants", {kConstants, 1}}});

// ---- the problem ----------------------------------------------------------------------------------------------------

class Importer {
 public:
  explicit Importer(JsonValue root) : root_{root, ""} {}

  Result<Problem> import() && {
    if (!root_.value.is_object()) return fail("the text is no object", "JSON");
    const std::array steps{&Importer::read_header, &Importer::read_layout, &Importer::read_functions,
                           &Importer::read_nodes,  &Importer::read_uses,   &Importer::finish};
    for (const auto step : steps)
      if (auto done = (this->*step)(); !done) return std::unexpected(std::move(done.error()));
    return std::move(problem_);
  }

 private:
  Result<void> read_header() {
    const auto format = root_.text("format");
    if (!format) return std::unexpected(format.error());
    if (*format != kFormat) return fail("is " + quoted(*format) + "; this reads " + quoted(kFormat), "format");
    if (const auto name = root_.value.find("name"); name && name->text()) problem_.name = *name->text();
    const auto dim = root_.index("dim");
    if (!dim) return std::unexpected(dim.error());
    problem_.dim = *dim;
    if (root_.value.find("where")) {
      const auto place = choice(root_, "where", kPlaces);
      if (!place) return std::unexpected(place.error());
      boundary_ = *place;
    }
    if (root_.value.find("ties")) {
      const auto ties = choice(root_, "ties", kTieRules);
      if (!ties) return std::unexpected(ties.error());
      problem_.ties = *ties;
    }
    if (const auto guard = root_.value.find("guard")) {
      if (!guard->number()) return root_.wrong("guard", "a number");
      problem_.guard = *guard->number();
    }
    if (const auto sort = root_.value.find("sort_constants")) {
      if (!sort->truth()) return root_.wrong("sort_constants", "true or false");
      problem_.sort_constants = *sort->truth();
    }
    return {};
  }

  Result<void> read_layout() {
    const auto into = [](std::vector<Field>& fields) {
      return [&fields](const Part& part) -> Result<void> {
        const auto name = part.text("name");
        const auto components = part.index("components");
        const auto first = part.index("first");
        if (!name) return std::unexpected(name.error());
        if (!components) return std::unexpected(components.error());
        if (!first) return std::unexpected(first.error());
        fields.push_back({std::string(*name), *components, *first});
        return {};
      };
    };
    auto read = root_.each("fields", true, into(problem_.fields));
    if (read) read = root_.each("aux_fields", false, into(problem_.aux_fields));
    if (!read) return read;
    read = root_.each("constants", false, [this](const Part& part) -> Result<void> {
      const auto name = part.text("name");
      if (!name) return std::unexpected(name.error());
      const auto value = part.value.find("default");
      if (value && !value->number()) return part.wrong("default", "a number");
      problem_.constants.push_back({std::string(*name), value ? *value->number() : 0.0});
      return {};
    });
    // What indices are compared with must be right before any index is read.
    return read ? check(problem_) : read;
  }

  // Opaque functions: first all names, then the partial derivatives, which are functions too.
  Result<void> read_functions() {
    auto read = root_.each("functions", false, [this](const Part& part) -> Result<void> {
      const auto name = part.text("name");
      if (!name) return std::unexpected(name.error());
      const auto id = static_cast<FunctionId>(functions_.size());
      if (functions_.try_emplace(std::string(*name), id).second) return {};
      return fail("two functions are called " + quoted(*name), part.name);
    });
    if (!read) return read;
    return root_.each("functions", false, [this](const Part& part) { return read_function(part); });
  }

  Result<void> read_function(const Part& part) {
    const auto arity = part.index("arity");
    if (!arity) return std::unexpected(arity.error());
    Function function{.name = std::string(*part.text("name")), .arity = *arity, .partials = {}};
    auto read = part.each("partials", false, [&](const Part& partial) -> Result<void> {
      const auto name = partial.value.text();
      const auto found = name ? functions_.find(std::string(*name)) : functions_.end();
      if (name && found == functions_.end()) return fail("there is no function " + quoted(*name), partial.name);
      function.partials.push_back(name ? std::optional(found->second) : std::nullopt);
      return {};
    });
    if (read) problem_.graph.declare(std::move(function));
    return read;
  }

  Result<void> read_nodes() {
    const auto nodes = root_.array("nodes");
    if (!nodes) return std::unexpected(nodes.error());
    problem_.graph.reserve(nodes->size());
    ids_.reserve(nodes->size());
    problem_.origins.begin_list("nodes", nodes->size());
    for (const JsonValue value : *nodes) {
      problem_.origins.begin_element(static_cast<NodeId>(problem_.graph.size()));
      auto id = read_node(value);
      if (!id) {
        Error& error = id.error();
        error.kind = ErrorKind::kInvalidSource;
        error.thing =
            "nodes[" + std::to_string(ids_.size()) + "]" + (error.thing.empty() ? "" : " (" + error.thing + ")");
        return std::unexpected(std::move(error));
      }
      ids_.push_back(*id);
    }
    problem_.origins.begin(static_cast<NodeId>(problem_.graph.size()), "");
    return {};
  }

  // Errors name the operator; the caller adds the place.
  Result<NodeId> read_node(JsonValue value) {
    const Part part{value, ""};
    if (!value.is_object()) return fail("is no object", "");
    const auto id = part.index("id");
    if (!id) return std::unexpected(id.error());
    if (*id != ids_.size())
      return fail("has the id " + std::to_string(*id) + "; nodes are numbered by their places, from 0 on", "");
    const auto op = part.text("op");
    if (!op) return std::unexpected(op.error());
    if (*op == "number") return read_number(part);
    if (*op == "leaf") return read_leaf(part);
    if (*op == "piecewise") return read_piecewise(part);
    if (auto read = read_arguments(part); !read) return std::unexpected(std::move(read.error()));
    if (*op == "named") return read_named(part);
    if (*op == "call") return read_call(part);
    return apply(problem_.graph, *op, arguments_);
  }

  Result<NodeId> argument(JsonValue value) const {
    const auto index = value.index();
    if (!index) return fail("an argument is no id of a node", "");
    if (*index < ids_.size()) return ids_[*index];
    return fail("uses node " + std::to_string(*index) + ", which does not come before it", "");
  }

  Result<void> read_arguments(const Part& part) {
    arguments_.clear();
    const auto found = part.value.find("args");
    if (!found) return {};
    if (!found->is_array()) return part.wrong("args", "an array");
    for (const JsonValue value : *found) {
      const auto id = argument(value);
      if (!id) return std::unexpected(id.error());
      arguments_.push_back(*id);
    }
    return {};
  }

  Result<NodeId> read_number(const Part& part) {
    const auto text = part.text("value");
    if (!text) return std::unexpected(text.error());
    const auto value = parse_number(*text);
    if (!value)
      return fail(quoted(*text) + " is no number that a double can hold", "number",
                  "write \"3\", \"-1/3\", \"0.25\" or \"0x1.8p+1\"");
    return problem_.graph.number(*value);
  }

  Result<NodeId> read_leaf(const Part& part) {
    const auto leaf = choice(part, "leaf", kLeaves);
    if (!leaf) return std::unexpected(leaf.error());
    std::array<std::uint32_t, 2> indices{};
    std::size_t count = 0;
    if (const auto given = part.value.find("index")) {
      if (!given->is_array()) return part.wrong("index", "an array");
      for (const JsonValue value : *given) {
        const auto index = value.index();
        if (!index) return fail("an index is no integer from 0 on", "leaf");
        if (count < indices.size()) indices[count] = *index;
        ++count;
      }
    }
    const std::string name(*part.text("leaf"));
    if (count != leaf->indices)
      return fail("'" + name + "' takes " + std::to_string(leaf->indices) + " indices, not " + std::to_string(count),
                  "leaf");
    const std::uint32_t dim = problem_.dim;
    const std::uint32_t length = *length_of(problem_, leaf->argument);
    const std::uint32_t rows = leaf->indices == 2 ? length / dim : length;
    if (indices[0] >= rows)
      return fail("index " + std::to_string(indices[0]) + " of '" + name + "', which has " + std::to_string(rows),
                  "leaf");
    if (leaf->indices == 2 && indices[1] >= dim)
      return fail("direction " + std::to_string(indices[1]) + " of " + std::to_string(dim), "leaf");
    return problem_.graph.leaf(leaf->argument, leaf->indices == 2 ? indices[0] * dim + indices[1] : indices[0]);
  }

  Result<NodeId> read_piecewise(const Part& part) {
    const auto given = part.array("pieces");
    if (!given) return std::unexpected(given.error());
    pieces_.clear();
    for (const JsonValue pair : *given) {
      if (!pair.is_array() || pair.size() != 2) return fail("a piece is no pair of condition and value", "piecewise");
      auto at = pair.begin();
      const auto condition = argument(*at);
      if (!condition) return std::unexpected(condition.error());
      const auto value = argument(*++at);
      if (!value) return std::unexpected(value.error());
      pieces_.push_back({*condition, *value});
    }
    return piecewise(problem_.graph, pieces_);
  }

  Result<NodeId> read_named(const Part& part) {
    const auto name = part.text("name");
    if (!name) return std::unexpected(name.error());
    if (arguments_.size() != 1) return fail("takes 1 argument, not " + std::to_string(arguments_.size()), "named");
    if (is_condition(problem_.graph[arguments_[0]].op)) return fail("argument 1 is a condition, not a value", "named");
    return problem_.graph.named(*name, arguments_[0]);
  }

  Result<NodeId> read_call(const Part& part) {
    const auto name = part.text("function");
    if (!name) return std::unexpected(name.error());
    const auto found = functions_.find(std::string(*name));
    if (found == functions_.end())
      return fail("there is no function " + quoted(*name), "call", "list it in 'functions'");
    const std::uint32_t arity = problem_.graph.function(found->second).arity;
    if (arity != arguments_.size())
      return fail(
          quoted(*name) + " takes " + std::to_string(arity) + " arguments, not " + std::to_string(arguments_.size()),
          "call");
    for (const NodeId argument : arguments_)
      if (is_condition(problem_.graph[argument].op)) return fail("an argument is a condition, not a value", "call");
    return problem_.graph.call(found->second, arguments_);
  }

  // ---- what uses the nodes ----

  Result<std::vector<NodeId>> read_entries(const Part& part) const {
    std::vector<NodeId> entries;
    auto read = part.each("entries", true, [&](const Part& entry) -> Result<void> {
      const auto index = entry.value.index();
      if (!index || *index >= ids_.size()) return fail("is no id of a node", entry.name);
      entries.push_back(ids_[*index]);
      return {};
    });
    if (!read) return std::unexpected(std::move(read.error()));
    return entries;
  }

  Result<bool> read_place(const Part& part) const {
    return part.value.find("where") ? choice(part, "where", kPlaces) : Result<bool>(boundary_);
  }

  Result<void> read_uses() {
    auto read = root_.each("residual", true, [this](const Part& part) { return read_residual(part); });
    if (read) read = root_.each("jacobian", false, [this](const Part& part) { return read_block(part); });
    return read;
  }

  Result<void> read_residual(const Part& part) {
    const auto name = part.text("name");
    if (!name) return std::unexpected(name.error());
    const auto kind = choice(part, "kind", kResidualKinds);
    if (!kind) return std::unexpected(kind.error());
    const auto field = part.index("field");
    if (!field) return std::unexpected(field.error());
    const auto place = read_place(part);
    if (!place) return std::unexpected(place.error());
    auto entries = read_entries(part);
    if (!entries) return std::unexpected(std::move(entries.error()));
    if (auto size = read_size(part); !size) return size;
    problem_.residuals.push_back({std::string(*name), *kind, *field, *place, std::move(*entries)});
    return {};
  }

  Result<void> read_block(const Part& part) {
    Block block;
    const auto name = part.text("name");
    if (!name) return std::unexpected(name.error());
    const auto kind = choice(part, "kind", kBlockKinds);
    if (!kind) return std::unexpected(kind.error());
    const auto test = part.index("test");
    if (!test) return std::unexpected(test.error());
    const auto trial = part.index("trial");
    if (!trial) return std::unexpected(trial.error());
    const auto place = read_place(part);
    if (!place) return std::unexpected(place.error());
    block = {.name = std::string(*name), .kind = *kind, .test = *test, .trial = *trial, .boundary = *place};
    if (part.value.find("entries")) {
      auto entries = read_entries(part);
      if (!entries) return std::unexpected(std::move(entries.error()));
      block.entries = std::move(*entries);
    }
    if (auto tangent = read_tangent(part, block); !tangent) return tangent;
    if (auto size = read_size(part); !size) return size;
    problem_.blocks.push_back(std::move(block));
    return {};
  }

  Result<void> read_tangent(const Part& part, Block& block) {
    if (part.value.find("tangent")) {
      const auto tangent = choice(part, "tangent", kTangents);
      if (!tangent) return std::unexpected(tangent.error());
      block.tangent = *tangent;
    }
    if (block.tangent == Tangent::kContinuation) {
      const auto constant = part.index("continuation");
      if (!constant) return std::unexpected(constant.error());
      block.continuation = *constant;
    }
    return part.each("frozen", false, [&](const Part& item) -> Result<void> {
      const auto text = item.value.text();
      if (!text) return fail("is no string", item.name);
      block.frozen.emplace_back(*text);
      return {};
    });
  }

  // Sizes follow from the layout; one that is stated must agree, which is known once all is read.
  Result<void> read_size(const Part& part) {
    if (!part.value.find("size")) {
      stated_sizes_.push_back(std::nullopt);
      return {};
    }
    const auto size = part.index("size");
    if (!size) return std::unexpected(size.error());
    stated_sizes_.emplace_back(*size);
    return {};
  }

  Result<void> finish() {
    if (auto checked = check(problem_); !checked) return checked;
    auto stated = stated_sizes_.begin();
    const auto compare = [&](const auto& function) -> Result<void> {
      const std::size_t size = size_of(problem_, function);
      const auto given = *stated++;
      if (!given || *given == size) return {};
      return fail("'size' is " + std::to_string(*given) + "; the layout gives " + std::to_string(size), function.name);
    };
    for (const Residual& residual : problem_.residuals)
      if (auto same = compare(residual); !same) return same;
    for (const Block& block : problem_.blocks)
      if (auto same = compare(block); !same) return same;
    return {};
  }

  Part root_;
  Problem problem_;
  bool boundary_ = false;
  std::unordered_map<std::string, FunctionId> functions_;
  std::vector<NodeId> ids_;  // by place in 'nodes'
  std::vector<NodeId> arguments_;
  std::vector<Piece> pieces_;
  std::vector<std::optional<std::uint32_t>> stated_sizes_;  // of the residual functions, then of the blocks
};

}  // namespace

Result<Problem> import_json(std::string_view text) {
  const auto tape = JsonTape::parse(text);
  if (!tape) return std::unexpected(tape.error());
  return Importer(tape->root()).import();
}

}  // namespace jitc::graph
