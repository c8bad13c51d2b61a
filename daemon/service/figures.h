// What bounds the service on this node: every limit with its value and where it came from, and which one binds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace jitc::service {

class Machine;

enum class Bounds { kSlots, kBudget, kPressure };

// slots: compiles at once. budget: bytes for compiles and spares together, what they hold already included. pressure:
// percent of the last ten seconds that some task stalled on memory.
struct Figure {
  Bounds bounds = Bounds::kSlots;
  double value = 0;
  std::string source;  // a file below /proc or /sys, a variable, or where a setting was made
  std::string note;    // how the value comes about, for people; may be empty
  bool binding = false;
};
const char* name_of(Bounds bounds);  // "slots", "budget", "pressure"
const char* unit_of(Bounds bounds);  // "compiles", "bytes", "percent"

// What was set (0: nothing), and where.
struct Wishes {
  std::uint32_t max_compilers = 0;
  std::string max_compilers_from;
  std::uint64_t memory_budget = 0;
  std::string memory_budget_from;
};

// What our own children hold. It is part of what the machine says is used, and is not to count against us twice.
struct Holdings {
  std::uint32_t processes = 0;
  std::uint64_t anonymous_bytes = 0;  // pages of files are no use of memory to the machine either
};

struct NodeLimits {
  std::uint32_t slots = 1;
  std::uint64_t budget_bytes = 0;
  double pressure_percent = 0;
  std::vector<Figure> figures;
  // Where the one that binds came from; empty when nothing does.
  std::string source_of(Bounds bounds) const;
};

// A wish for slots stands in the place of cores; descriptors and processes bound it all the same. A wish for memory is
// one more limit: nobody gets more than there is. Of pressure the largest figure counts.
NodeLimits node_limits(const Machine& machine, const Wishes& wishes, const Holdings& holdings);

// The slots to use next: they fall at once, and rise to what the last two readings both allow.
std::uint32_t steady_slots(std::uint32_t current, std::uint32_t before, std::uint32_t measured);
// The budget to use next, so that it does not flutter with every reading: it falls at once when memory was lost (beyond
// one part in twenty), and rises only by more than one part in eight.
std::uint64_t steady_budget(std::uint64_t current, std::uint64_t measured);
// Pressure begins above 10 % and ends below 5 %.
bool steady_pressure(bool current, double percent);

}  // namespace jitc::service
