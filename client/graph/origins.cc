#include "client/graph/origins.h"

#include <algorithm>
#include <utility>

namespace jitc::graph {

void Origins::begin_list(std::string_view list, std::size_t elements) {
  list_ = list;
  starts_.reserve(elements);
}

void Origins::begin_element(NodeId next) {
  starts_.push_back(next);
  ++elements_;
}

void Origins::begin(NodeId next, std::string_view where) {
  if (!ends_.empty() && where == latest()) return;
  starts_.push_back(next);
  texts_ += where;
  ends_.push_back(texts_.size());
}

void Origins::renumber(std::vector<NodeId> originals) {
  if (!originals_.empty())
    for (NodeId& original : originals) original = originals_[original];
  originals_ = std::move(originals);
}

std::string_view Origins::text(std::size_t place) const {
  const std::size_t i = place - elements_;
  const std::size_t begin = i == 0 ? 0 : ends_[i - 1];
  return std::string_view(texts_).substr(begin, ends_[i] - begin);
}

std::string Origins::describe(NodeId id) const {
  if (id < originals_.size()) id = originals_[id];
  const auto after = static_cast<std::size_t>(std::ranges::upper_bound(starts_, id) - starts_.begin());
  if (after > 0 && after <= elements_) return list_ + "[" + std::to_string(after - 1) + "]";
  const std::string_view where = after == 0 ? std::string_view() : text(after - 1);
  return "node " + std::to_string(id) + (where.empty() ? "" : " at " + std::string(where));
}

}  // namespace jitc::graph
