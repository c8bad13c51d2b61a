// The roll call after a time-out: which ranks wait in which step, and which do not answer. A rank that has given up
// says where it waited to rank 0. Rank 0, when it gives up or hears that another has, calls all to say where they wait,
// and tells them what it has heard. So the first patience that ends is everybody's.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/gate/operation.h"
#include "client/include/jitc/jitc.h"

namespace jitc::gate {

// "1.5 s".
std::string seconds_text(std::chrono::nanoseconds duration);

// Where a rank has waited in vain.
struct Place {
  std::chrono::nanoseconds waited{};
  std::string step;  // "for all ranks to begin call 3"
};

// One line about all ranks, of at most 1 KiB; `places` by rank, nullopt where there was no answer. Pure.
std::string tell_places(const std::vector<std::optional<Place>>& places);

// One rank's part in it. Starts operations and looks at them, and never waits: whoever cannot be reached gives no
// answer. Between its functions the caller lets time pass, as long as it has patience.
class RollCall {
 public:
  // Without isend, irecv and iprobe in the table nobody can be asked.
  static bool is_possible(const jitc_communicator& table) { return table.isend && table.irecv && table.iprobe; }
  // Has another rank given up? Then this one does, too. To be asked now and then by whoever waits.
  static bool is_under_way(const jitc_communicator& table);

  // Begins to ask. What is under way is on `operations`, and may be so for ever.
  RollCall(const jitc_communicator& table, Place here, Operations& operations);
  // Progresses what is under way; true when nothing more is waited for.
  bool advance();
  // Patience is over. Rank 0 begins to tell all ranks, which is to be advanced, too: the others may hear it later.
  void close();
  // In place of all this: the rank does not wait here, but has to leave. It tells, and hears nothing.
  void leave();
  // Once, after close().
  std::string take_findings() { return std::move(findings_); }

 private:
  struct Message {
    Operation* operation;
    int peer;
    bool is_received;
  };

  bool is_root() const { return table_.rank == 0; }
  void begin();
  void tell_all();
  const std::string& keep(std::string bytes);
  bool send(const std::string& kept, int to);
  void receive(std::size_t bytes, int from);
  bool has_ended(const Message& message);

  const jitc_communicator& table_;
  Operations& operations_;
  std::vector<Message> under_way_;
  std::vector<std::optional<Place>> places_;  // on rank 0
  std::string findings_;
};

}  // namespace jitc::gate
