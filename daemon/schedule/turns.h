// A queue shared by clients: they take turns, each client's flights keep their order.
#pragma once

#include <cstddef>
#include <deque>
#include <list>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/schedule/scheduler.h"

namespace jitc::schedule {

class Turns {
 public:
  struct Client {
    std::string name;
    std::deque<FlightId> flights;
  };

  // A client that was not waiting takes its place behind all others.
  void push_back(const std::string& client, FlightId flight) { line_of(client).push_back(flight); }
  void push_front(const std::string& client, FlightId flight) { line_of(client).push_front(flight); }
  void remove(const std::string& client, FlightId flight);
  // The client had its turn.
  void served(const std::string& client);

  // The client whose turn is next comes first.
  const std::list<Client>& clients() const { return clients_; }
  // All flights in the order of turns.
  std::vector<FlightId> order() const;

 private:
  std::deque<FlightId>& line_of(const std::string& client);

  std::list<Client> clients_;
  std::unordered_map<std::string, std::list<Client>::iterator> by_name_;
};

}  // namespace jitc::schedule
