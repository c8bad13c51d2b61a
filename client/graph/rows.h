// Sparse rows of derivatives, by node: the working memory of a forward sweep. It is proportional to the rows that are
// still needed, not to the graph.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "client/graph/graph.h"

namespace jitc::graph {

inline constexpr NodeId kNone = ~NodeId{0};

// A derivative, factor * value; without a factor, the value; without a value, zero. Factors are common to the
// directions of a row and are multiplied and added among themselves as long as they can be: that costs once what would
// else be done for every direction.
struct Term {
  NodeId value = kNone;
  NodeId factor = kNone;
};

// One derivative that is not identically zero. Rows are sorted by direction.
struct Entry {
  std::uint32_t direction = 0;
  Term term;
};

struct Row {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

// Rows of the nodes in work, in one array that is packed when most of it is no longer needed.
class Rows {
 public:
  explicit Rows(std::size_t nodes) : rows_(nodes) {}

  Row operator[](NodeId id) const { return rows_[id]; }
  Entry entry(Row row, std::uint32_t i) const { return entries_[row.first + i]; }
  bool is_full() const { return entries_.size() == kMost; }  // rows written since are cut short

  // A row is written by begin, add, end.
  void begin() { started_ = static_cast<std::uint32_t>(entries_.size()); }
  void add(Entry entry) {
    if (!is_full()) entries_.push_back(entry);
  }
  void end(NodeId id) {
    rows_[id] = {started_, static_cast<std::uint32_t>(entries_.size()) - started_};
    if (rows_[id].count > 0) owners_.push_back(id);
  }

  void drop(NodeId id) {
    dropped_ += rows_[id].count;
    rows_[id] = {};
    if (dropped_ > kSlack && dropped_ * 2 > entries_.size()) pack();
  }

  std::size_t bytes() const {
    return rows_.capacity() * sizeof(Row) + entries_.capacity() * sizeof(Entry) + owners_.capacity() * sizeof(NodeId);
  }

 private:
  static constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::size_t kSlack = 1U << 16;

  void pack() {
    std::uint32_t end = 0;
    std::erase_if(owners_, [&](NodeId id) {
      Row& row = rows_[id];
      if (row.count == 0) return true;
      std::copy_n(entries_.begin() + row.first, row.count, entries_.begin() + end);
      row.first = end;
      end += row.count;
      return false;
    });
    entries_.resize(end);
    dropped_ = 0;
  }

  std::vector<Row> rows_;
  std::vector<Entry> entries_;
  std::vector<NodeId> owners_;  // of the rows in entries_, in order; dropped ones have no entries any more
  std::size_t dropped_ = 0;
  std::uint32_t started_ = 0;
};

}  // namespace jitc::graph
