// The statements of a function body: temporaries, then one assignment for each output.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "client/graph/emit.h"
#include "client/graph/expression.h"
#include "client/graph/plain.h"
#include "client/graph/plan.h"

namespace jitc::graph {

// Writes bodies over one graph, one after the other.
class BodyWriter {
 public:
  // A leaf is spelled once, for all bodies.
  BodyWriter(const Plain& plain, const BodyOptions& options)
      : plain_(plain), options_(options), plan_(plain), spelling_of_(plain.graph().size()) {}

  // Walks what the outputs need, so that `order` is known.
  void begin(std::span<const NodeId> outputs) { plan_.walk(outputs); }
  std::span<const NodeId> order() const { return plan_.order(); }
  // Appends the statements; targets[i] is assigned the i-th output that `begin` was given. Fails (kUsage) when trees
  // would make `text` longer than kTreeLimit.
  common::Result<void> write(std::string& text, std::span<const Output> outputs);
  void add_to(EmitStatistics& statistics) const;

 private:
  void write_chosen(std::string& text, std::span<const Output> outputs);
  void write_region(std::string& text, Region region, std::string& indent);
  void write_statement(std::string& text, NodeId id, std::string& indent);
  void write_value(std::string& text, NodeId id);  // of a temporary, without its name
  void write_expression(std::string& text, NodeId id, Binding needed);
  void write_pieces(std::string& text, std::size_t bottom);
  const std::string& spelled(NodeId leaf);
  void write_atom(std::string& text, NodeId id, Binding needed);
  bool is_atom(NodeId id) const;
  std::uint64_t measure(std::span<const Output> outputs);
  std::string name(NodeId temporary) const;

  const Plain& plain_;
  const BodyOptions& options_;
  Plan plan_;
  std::vector<TextPiece> stack_;            // what is still to be written, the next on top
  std::vector<std::uint32_t> spelling_of_;  // by node: 1 + its place in spellings_, 0 for none
  std::vector<std::string> spellings_;
};

}  // namespace jitc::graph
