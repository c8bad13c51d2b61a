#include "client/gate/protocol.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <numeric>
#include <unordered_set>

namespace jitc::gate {
namespace {

using common::Error;
using common::Result;

// So many failing ranks say why; of the others only the number is known.
constexpr std::size_t kReasons = 4;

void add_ranks_in(std::span<const std::uint64_t> words, std::vector<int>& ranks) {
  for (std::size_t i = 0; i < words.size(); ++i)
    for (std::uint64_t bits = words[i]; bits != 0; bits &= bits - 1)
      ranks.push_back(static_cast<int>(64 * i) + std::countr_zero(bits));
}

// The last beat, and the bytes that follow it: the artifact, or the error.
std::pair<Beat, std::string> last_beat(Result<Obtained> obtained) {
  Beat beat;
  std::string bytes;
  if (obtained) {
    beat.state = Beat::State::kArtifact;
    beat.origin = obtained->origin;
    beat.is_merged = obtained->is_merged;
    beat.has_made_code = obtained->has_made_code;
    beat.compile_seconds = obtained->compile_seconds;
    beat.peak_bytes = obtained->peak_bytes;
    beat.key = obtained->key;
    bytes = std::move(obtained->bytes);
  } else {
    beat.state = Beat::State::kFailed;
    bytes = encode(bounded(std::move(obtained.error())));
  }
  beat.size = bytes.size();
  return {beat, std::move(bytes)};
}

// Of another leader: a node may have no daemon, or another policy, or no room. What the root's says counts.
bool is_for_the_root(common::ErrorKind kind) {
  return kind == common::ErrorKind::kUnreachable || kind == common::ErrorKind::kRefused;
}

Failure bug(std::string message) { return {{common::ErrorKind::kInternal, std::move(message), {}, {}}, {}}; }

Error no_memory(std::string what) {
  return {
      common::ErrorKind::kNotLoaded, "no memory " + std::move(what), {}, "raise this rank's memory limit (ulimit -v)"};
}

}  // namespace

// ---- step 1: certificate ------------------------------------------------------------------------------------------

Action Protocol::begin() { return certify(true); }

Action Protocol::certify(bool is_arrival) {
  step_ = Step::kCertificate;
  Certificate certificate;
  certificate.is_strict = view_.is_strict;
  certificate.isa = view_.isa;
  certificate.patience = ranks_.patience;
  if (view_.error) {
    certificate.error = view_.error->kind;
  } else {
    for (std::size_t i = 0; i < view_.modules.size(); ++i)
      if (!view_.modules[i].is_held) certificate.needs |= need_bit(i);
    certificate.call = view_.call;
    if (certificate.needs == 0) certificate.held = held_beside(0);
  }
  const CertificateWords words = certificate.words();
  return action::Reduce{Words(words.begin(), words.end()), is_arrival};
}

Action Protocol::reduced(std::span<const std::uint64_t> words) {
  if (step_ == Step::kCertificate) {
    CertificateWords combined{};
    std::ranges::copy(words, combined.begin());
    verdict_ = judge(combined);
    return judged();
  }
  if (step_ == Step::kHeld) {
    if (words[0] & words[1]) {
      needed_.resize(view_.modules.size());
      std::iota(needed_.begin(), needed_.end(), 0);
    }
    return start_turns();
  }
  if (step_ == Step::kNodes) {
    learn_leaders(words);
    return assign();
  }
  add_ranks_in(words, failing_);
  return failing_.empty() ? shared() : next_reason();
}

Action Protocol::judged() {
  if (verdict_.someone_failed) return share(Sharing::kRequests, view_.error);
  if (verdict_.all_alike) return agreed();
  if (has_settled_) return finish(bug("the ranks' calls differ in what no rank can name"));
  has_settled_ = true;
  step_ = Step::kRootsCall;
  if (is_root()) return action::Pack{};
  return action::Broadcast{0, {}, true};
}

Action Protocol::packed(std::string call) { return action::Broadcast{0, std::move(call), true}; }

Action Protocol::compared(Result<View> adopted) {
  if (!adopted) return share(Sharing::kDifferences, std::move(adopted.error()));
  view_ = std::move(*adopted);
  return share(Sharing::kDifferences, {});
}

Action Protocol::agreed() {
  has_agreed_ = true;
  return verdict_.someone_needs ? hand_off() : finish({});
}

// ---- errors of single ranks become everybody's ---------------------------------------------------------------------
// After the reduction only a rank whose error the others wait for may lack memory: the others end without the rest.

Action Protocol::share(Sharing what, std::optional<Error> mine) {
  step_ = Step::kErrors;
  sharing_ = what;
  mine_ = std::move(mine);
  failing_.reserve(static_cast<std::size_t>(ranks_.size));
  reasons_.reserve(kReasons);
  Words failing((static_cast<std::size_t>(ranks_.size) + 63) / 64);
  const auto own = static_cast<std::size_t>(ranks_.rank);
  if (mine_) failing[own / 64] |= std::uint64_t{1} << (own % 64);
  return action::Reduce{std::move(failing)};
}

Action Protocol::next_reason() {
  if (reasons_.size() == std::min(failing_.size(), kReasons)) {
    Failure failure;
    if (!with_memory([&] { failure = join_errors(failing_, reasons_, ranks_.size); }))
      failure = {std::move(reasons_.front()), std::move(failing_)};
    return finish(std::move(failure));
  }
  const int from = failing_[reasons_.size()];
  return action::Broadcast{from, from == ranks_.rank ? encode(bounded(*mine_)) : std::string(), true};
}

// No rank has an error. After the last of these nothing may fail: the other ranks have been told that all is well.
Action Protocol::shared() {
  switch (sharing_) {
    case Sharing::kRequests:
      return finish(bug("a rank cannot make its request, and none says why"));
    case Sharing::kDifferences:
      return certify(false);
    case Sharing::kFailures:
      return finish(std::move(failure_));
    case Sharing::kLoads:
      break;
  }
  return finish({});
}

// ---- step 2: turns ------------------------------------------------------------------------------------------------

// What this rank holds of the modules whose need bits are not set.
std::uint64_t Protocol::held_beside(std::uint64_t needs) const {
  std::uint64_t held = 0;
  for (std::size_t i = 0; i < view_.modules.size(); ++i)
    if (!(needs & need_bit(i))) held = held_bits(held, view_.modules[i].key);
  return held;
}

Action Protocol::hand_off() {
  for (std::size_t i = 0; i < view_.modules.size(); ++i)
    if (verdict_.someone_needs & need_bit(i)) needed_.push_back(i);
  if (needed_.size() == view_.modules.size()) return start_turns();
  step_ = Step::kHeld;  // the others are held by all ranks, but is it the same code?
  const std::uint64_t held = held_beside(verdict_.someone_needs);
  return action::Reduce{{held, ~held}};
}

Action Protocol::start_turns() {
  const bool is_one = needed_.size() == 1;
  turns_ = {Turn{0, needed_.front(), !is_one}};
  if (!is_root()) return start_turn();
  return begin_work(is_one ? Work::kLookUpOrCompile : Work::kLookUp, needed_);
}

Action Protocol::begin_work(Work work, std::vector<std::size_t> modules) {
  step_ = Step::kBeginning;
  return action::Begin{work, std::move(modules), verdict_.common_isa};
}

// To any leader. Where the root's call was adopted only the root can make its code; and what depends on the node, as
// native code does, is the root's, whatever others have.
bool Protocol::may_be_dealt(std::size_t place) const {
  return !found_[place] && !has_settled_ && !view_.modules[needed_[place]].is_of_a_node;
}

Action Protocol::deal() {
  std::size_t dealt = 0;
  for (std::size_t i = 0; i < needed_.size(); ++i)
    if (may_be_dealt(i)) ++dealt;
  if (dealt < 2 || !leaders_.empty()) return assign();
  step_ = Step::kNodes;
  Words nodes(static_cast<std::size_t>(ranks_.size));
  nodes[static_cast<std::size_t>(ranks_.rank)] = ranks_.node;
  return action::Reduce{std::move(nodes)};
}

// The first rank of each node, so that the root is before all.
void Protocol::learn_leaders(std::span<const std::uint64_t> nodes) {
  std::unordered_set<std::uint64_t> known;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    if (known.insert(nodes[rank]).second) leaders_.push_back(static_cast<int>(rank));
}

Action Protocol::assign() {
  std::vector<std::size_t> own;
  std::size_t dealt = 0;
  turns_.clear();
  turns_.reserve(2 * needed_.size());  // each may be taken over
  turn_ = 0;
  for (std::size_t i = 0; i < needed_.size(); ++i) {
    // The first one dealt is the root's, who alone leads where leaders are not known.
    const bool is_roots = leaders_.empty() || !may_be_dealt(i);
    const int leader = is_roots ? 0 : leaders_[dealt++ % leaders_.size()];
    turns_.push_back({leader, needed_[i], false});
    if (!found_[i] && leader == ranks_.rank) own.push_back(needed_[i]);
  }
  return own.empty() ? start_turn() : begin_work(Work::kCompile, std::move(own));
}

action::Await Protocol::await() const { return {turn().module, turn().is_look_up, verdict_.least_patience}; }

Action Protocol::start_turn() {
  if (turn().leader == ranks_.rank) {
    step_ = Step::kAwaiting;
    return await();
  }
  step_ = Step::kHearing;
  return action::Broadcast{turn().leader, std::string(sizeof(Beat), '\0')};
}

Action Protocol::next_turn() {
  if (++turn_ < turns_.size()) return start_turn();
  if (failures_.empty()) return share(Sharing::kLoads, std::move(own_error_));
  const std::size_t asked = turns_.front().is_look_up ? 1 : view_.modules.size();
  if (!with_memory([&] { failure_ = join_modules(failures_, asked); }) && !own_error_) own_error_ = out_of_memory();
  return share(Sharing::kFailures, std::move(own_error_));
}

// The leader's side.

Action Protocol::beat_due(const Beat& beat) {
  step_ = Step::kBeat;
  return action::Post{encode(beat)};
}

Action Protocol::looked_up(const Result<std::vector<bool>>& found, double seconds) {
  Result<Obtained> flags;
  if (found) {
    for (const bool one : *found) flags->bytes += one ? '1' : '0';
  } else {
    flags = std::unexpected(found.error());
  }
  return obtained(std::move(flags), seconds);
}

Action Protocol::obtained(Result<Obtained> obtained, double seconds) {
  if (!obtained && !is_root() && is_for_the_root(obtained.error().kind)) {
    Beat last;
    last.state = Beat::State::kUnreachable;
    return send(last, {});
  }
  auto [last, bytes] = last_beat(std::move(obtained));
  last.seconds = seconds;
  return send(last, std::move(bytes));
}

Action Protocol::send(const Beat& last, std::string bytes) {
  step_ = Step::kLastBeat;
  last_ = last;
  result_ = std::move(bytes);
  return action::Post{encode(last)};
}

Action Protocol::done() {
  switch (step_) {
    case Step::kBeat:
      step_ = Step::kAwaiting;
      return await();
    case Step::kLastBeat:
      step_ = Step::kSending;
      return action::Broadcast{ranks_.rank, std::move(result_)};
    case Step::kSettling:
      return end_turn(std::move(result_));
    default:  // work has begun, or a beat was told of
      return start_turn();
  }
}

// The others' side; broadcasts of other steps end here, too.
Action Protocol::broadcast(std::optional<std::string> bytes) {
  switch (step_) {
    case Step::kErrors: {
      Error reason = out_of_memory();
      with_memory([&] { reason = bytes ? decode_error(*bytes) : no_memory("to receive another rank's error"); });
      reasons_.push_back(std::move(reason));
      return next_reason();
    }
    case Step::kRootsCall:
      if (!bytes) return share(Sharing::kDifferences, no_memory("to receive the root's version of the request"));
      step_ = Step::kComparing;
      return action::Compare{std::move(*bytes), verdict_.someone_is_strict};
    case Step::kSending:
      step_ = Step::kSettling;
      result_ = std::move(*bytes);
      return action::Settle{};
    case Step::kHearing: {
      const Beat beat = decode_beat(*bytes);
      if (beat.state == Beat::State::kWaiting) {
        step_ = Step::kTelling;
        return action::Tell{turn().module, beat};
      }
      step_ = Step::kReceiving;
      last_ = beat;
      // What was found decides how the call goes on: without it this rank could not keep step.
      if (turn().is_look_up && beat.state == Beat::State::kArtifact)
        return action::Broadcast{turn().leader, std::string(beat.size, '\0')};
      return action::Receive{turn().leader, beat.size};
    }
    default:
      return end_turn(std::move(bytes));
  }
}

Action Protocol::received(std::optional<std::string> bytes) { return end_turn(std::move(bytes)); }

Action Protocol::end_turn(std::optional<std::string> bytes) {
  if (last_.state == Beat::State::kUnreachable) return take_over();
  if (last_.state == Beat::State::kFailed) {
    if (!bytes && !own_error_)
      own_error_ = no_memory("to receive why there is no module (" + std::to_string(last_.size) + " bytes)");
    failures_.push_back({view_.modules[turn().module].name, decode_error(bytes.value_or(std::string()))});
    return next_turn();
  }
  if (turn().is_look_up) {
    found_.clear();
    std::ranges::transform(*bytes, std::back_inserter(found_), [](char flag) { return flag == '1'; });
    return deal();
  }
  step_ = Step::kLoading;
  return action::Load{turn().module, last_, std::move(bytes)};
}

// The leader's node has no daemon. The root's compiles the module, after all turns, and nothing is dealt to that node
// any more.
Action Protocol::take_over() {
  const Turn unreachable = turn();
  std::erase(leaders_, unreachable.leader);
  turns_.push_back({0, unreachable.module, false});
  ++turn_;
  return is_root() ? begin_work(Work::kCompile, {unreachable.module}) : start_turn();
}

Action Protocol::loaded(std::optional<Error> error) {
  if (!own_error_) own_error_ = std::move(error);
  return next_turn();
}

Action Protocol::finish(std::optional<Failure> failure) {
  step_ = Step::kEnded;
  return action::Finish{std::move(failure)};
}

// -------------------------------------------------------------------------------------------------------------------

std::string Protocol::waits_for() const {
  switch (step_) {
    case Step::kCertificate:
      return "for all ranks to begin";
    case Step::kErrors:
      if (sharing_ == Sharing::kRequests) return "for the errors of";
      if (sharing_ == Sharing::kDifferences) return "for the differences in";
      return sharing_ == Sharing::kFailures ? "for all ranks to hear of the failure of" : "for all ranks to load";
    case Step::kRootsCall:
      return "for the root's version of";
    case Step::kHeld:
      return "for all ranks to say what they hold of";
    case Step::kNodes:
      return "for all ranks to say where they are in";
    case Step::kAwaiting:
    case Step::kBeat:
      return "for ranks to hear of";
    case Step::kLastBeat:
    case Step::kSending:
    case Step::kSettling:
      return "for all ranks to take";
    case Step::kHearing:
    case Step::kTelling:
      return "for a sign of rank " + std::to_string(turn().leader) + ", which compiles";
    default:
      return "for the result of";
  }
}

}  // namespace jitc::gate
