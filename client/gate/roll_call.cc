#include "client/gate/roll_call.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <utility>

#include "client/gate/failure.h"

namespace jitc::gate {
namespace {

using std::chrono::nanoseconds;

// What travels has a fixed size, and is padded with zeros.
constexpr std::size_t kStepBytes = 120;
constexpr std::size_t kPlaceBytes = sizeof(nanoseconds::rep) + kStepBytes;
constexpr std::size_t kFindingsBytes = 1024;
constexpr std::size_t kCallBytes = 1;
// Ranks may wait in so many steps before the rest is only counted. More than two are rare.
constexpr std::size_t kNamedSteps = 4;

constexpr const char* kSilent = " (stopped, or at work elsewhere)";

std::string encode(const Place& place) {
  std::string bytes(kPlaceBytes, '\0');
  const nanoseconds::rep waited = place.waited.count();
  std::memcpy(bytes.data(), &waited, sizeof waited);
  place.step.copy(bytes.data() + sizeof waited, kStepBytes);
  return bytes;
}

// Up to the padding.
std::string text_of(const char* bytes, std::size_t size) { return {bytes, std::find(bytes, bytes + size, '\0')}; }

Place decode(const std::string& bytes) {
  nanoseconds::rep waited = 0;
  std::memcpy(&waited, bytes.data(), sizeof waited);
  return {nanoseconds(waited), text_of(bytes.data() + sizeof waited, kStepBytes)};
}

// The ranks that wait in one step.
struct Group {
  std::string step;
  nanoseconds longest{};
  std::vector<int> ranks;
};

std::string text_of(const Group& group, int size) {
  return name_ranks(group.ranks, size) + (group.ranks.size() == 1 ? " waits " : " wait ") + group.step + " (" +
         seconds_text(group.longest) + ")";
}

}  // namespace

std::string seconds_text(nanoseconds duration) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3g s", std::chrono::duration<double>(duration).count());
  return text.data();
}

std::string tell_places(const std::vector<std::optional<Place>>& places) {
  const int size = static_cast<int>(places.size());
  std::vector<Group> groups;
  std::vector<int> elsewhere;
  std::vector<int> silent;
  for (int rank = 0; rank < size; ++rank) {
    const std::optional<Place>& place = places[static_cast<std::size_t>(rank)];
    if (!place) {
      silent.push_back(rank);
      continue;
    }
    auto group = std::ranges::find(groups, place->step, &Group::step);
    if (group == groups.end()) {
      if (groups.size() == kNamedSteps) {
        elsewhere.push_back(rank);
        continue;
      }
      group = groups.insert(group, {place->step, {}, {}});
    }
    group->longest = std::max(group->longest, place->waited);
    group->ranks.push_back(rank);
  }

  // First what matters most, as the rest may be cut.
  std::string text = silent.empty() ? "all ranks answer" : "no answer from " + name_ranks(silent, size) + kSilent;
  for (const Group& group : groups) text += "; " + text_of(group, size);
  if (!elsewhere.empty())
    text += "; " + name_ranks(elsewhere, size) + (elsewhere.size() == 1 ? " waits" : " wait") + " in other steps";
  text.resize(std::min(text.size(), kFindingsBytes));
  return text;
}

bool RollCall::is_under_way(const jitc_communicator& table) {
  int is_there = 0;
  return is_possible(table) && table.iprobe(table.state, &is_there) == 0 && is_there != 0;
}

RollCall::RollCall(const jitc_communicator& table, Place here, Operations& operations)
    : table_(table), operations_(operations) {
  places_.resize(is_root() ? static_cast<std::size_t>(table_.ranks) : 1);
  places_[0] = std::move(here);
  with_memory([this] { begin(); });  // what is heard of some is better than nothing
}

// Whatever a rank knows, it takes part in the same messages: its place to rank 0, and two from there.
void RollCall::begin() {
  if (!is_root()) {
    if (send(keep(encode(*places_[0])), 0)) under_way_.push_back({&operations_.back(), 0, false});
    receive(kCallBytes, 0);
    receive(kFindingsBytes, 0);
    return;
  }
  const std::string& call = keep(std::string(kCallBytes, '\0'));
  for (int rank = 1; rank < table_.ranks; ++rank) {
    send(call, rank);
    receive(kPlaceBytes, rank);
  }
}

bool RollCall::advance() {
  std::erase_if(under_way_, [this](const Message& message) { return has_ended(message); });
  return under_way_.empty();
}

void RollCall::close() {
  under_way_.clear();
  if (is_root()) {
    findings_ = tell_places(places_);
    tell_all();
  } else if (findings_.empty()) {
    findings_ = std::string("no answer from rank 0") + kSilent;
  }
}

void RollCall::leave() {
  under_way_.clear();
  if (!is_root()) return;
  findings_ = "rank 0 waits " + places_[0]->step;
  tell_all();
}

// Nothing is waited for but that those who listen have taken it. Who is not told, for want of memory, says that rank 0
// gives no answer.
void RollCall::tell_all() {
  with_memory([this] {
    const std::string& findings = keep(findings_);
    for (int rank = 1; rank < table_.ranks; ++rank)
      if (send(findings, rank) && places_[static_cast<std::size_t>(rank)])
        under_way_.push_back({&operations_.back(), rank, false});
  });
}

// One buffer for all messages with the same text; it lasts as long as they do.
const std::string& RollCall::keep(std::string bytes) { return operations_.emplace_back().bytes = std::move(bytes); }

bool RollCall::send(const std::string& kept, int to) {
  Operation& operation = operations_.emplace_back();
  return table_.isend(table_.state, kept.data(), kept.size(), to, &operation.pending) == 0;
}

void RollCall::receive(std::size_t bytes, int from) {
  Operation& operation = operations_.emplace_back();
  operation.bytes.resize(bytes);
  under_way_.push_back({&operation, from, true});
  if (table_.irecv(table_.state, operation.bytes.data(), bytes, from, &operation.pending)) under_way_.pop_back();
}

// A failure is an end, too: there will be no answer.
bool RollCall::has_ended(const Message& message) {
  int done = 0;
  if (table_.test(table_.state, &message.operation->pending, &done)) return true;
  if (!done) return false;
  const std::string& bytes = message.operation->bytes;
  if (!message.is_received || bytes.size() == kCallBytes) return true;
  if (is_root())
    places_[static_cast<std::size_t>(message.peer)] = decode(bytes);
  else
    findings_ = text_of(bytes.data(), bytes.size());
  return true;
}

}  // namespace jitc::gate
