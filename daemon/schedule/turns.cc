#include "daemon/schedule/turns.h"

#include <algorithm>

namespace jitc::schedule {

std::deque<FlightId>& Turns::line_of(const std::string& client) {
  const auto found = by_name_.find(client);
  if (found != by_name_.end()) return found->second->flights;
  clients_.push_back({client, {}});
  by_name_.emplace(client, std::prev(clients_.end()));
  return clients_.back().flights;
}

void Turns::remove(const std::string& client, FlightId flight) {
  const auto found = by_name_.find(client);
  if (found == by_name_.end()) return;
  auto& flights = found->second->flights;
  const auto at = std::ranges::find(flights, flight);  // near the front, most often
  if (at != flights.end()) flights.erase(at);
  if (!flights.empty()) return;
  clients_.erase(found->second);
  by_name_.erase(found);
}

void Turns::served(const std::string& client) {
  const auto found = by_name_.find(client);
  if (found != by_name_.end()) clients_.splice(clients_.end(), clients_, found->second);
}

std::vector<FlightId> Turns::order() const {
  std::vector<FlightId> order;
  std::vector<const std::deque<FlightId>*> lines;
  for (const Client& client : clients_) lines.push_back(&client.flights);
  for (std::size_t round = 0; !lines.empty(); ++round) {
    std::erase_if(lines, [round](const auto* line) { return line->size() <= round; });
    for (const auto* line : lines) order.push_back((*line)[round]);
  }
  return order;
}

}  // namespace jitc::schedule
