#include "client/gate/gate.h"

#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <string_view>
#include <type_traits>
#include <utility>

#include "client/gate/divergence.h"
#include "common/identity.h"

namespace jitc::gate {
namespace {

using common::Error;
using common::ErrorKind;
using common::Result;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

// How often a leader progresses beats that slow ranks have not taken yet: MPI moves only when it is called.
constexpr std::chrono::milliseconds kAdvance{20};

common::Digest digest_of_all(const std::vector<common::Digest>& calls) {
  if (calls.size() == 1) return calls.front();
  common::Hasher hasher("jitc calls 1");
  hasher.list("calls", calls.size());
  for (const common::Digest& call : calls) hasher.digest("call", call);
  return hasher.finish();
}

Beat waiting_beat(const rpc::Progress& progress) {
  Beat beat;
  beat.phase = static_cast<std::uint32_t>(progress.phase);
  beat.place = progress.place;
  beat.seconds = progress.seconds;
  beat.memory_bytes = progress.memory_bytes;
  return beat;
}

rpc::Progress progress_of(const Beat& beat) {
  return {static_cast<rpc::Progress::Phase>(beat.phase), beat.place, beat.seconds, beat.memory_bytes};
}

// A limit of less than a millisecond is a limit, too.
std::chrono::milliseconds milliseconds_of(nanoseconds limit) {
  return std::chrono::ceil<std::chrono::milliseconds>(limit);
}

// The least patient of all ranks is to hear several beats before it would give up.
nanoseconds beat_for(std::chrono::milliseconds least_patience, const Pacing& pacing) {
  return least_patience.count() > 0 ? std::min(pacing.beat, nanoseconds(least_patience) / 4) : pacing.beat;
}

Error no_memory(std::string_view what, std::string_view thing) {
  try {
    return {ErrorKind::kNotLoaded, "no memory " + std::string(what), std::string(thing),
            "raise this rank's memory limit (ulimit -v)"};
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
}

// Not of the request, which fails alike wherever it is compiled.
bool is_of_the_node(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInvalidSource:
    case ErrorKind::kUsage:
    case ErrorKind::kDivergent:
    case ErrorKind::kBroken:
      return false;
    default:
      return true;
  }
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), HOST_NAME_MAX);
  return name.data();
}

}  // namespace

Gate::Gate(const jitc_communicator& communicator, GateOptions options, GateServices services, OnProgress on_progress)
    : collectives_(communicator, options.pacing,
                   [this](double seconds) { tell(name_, {rpc::Progress::Phase::kArriving, 0, seconds, 0}); }),
      options_(std::move(options)),
      services_(services),
      on_progress_(std::move(on_progress)) {}

Outcome<Delivery> Gate::compile(Demand demand) {
  Outcome<std::vector<Delivery>> deliveries = compile_all({&demand, 1});
  if (!deliveries) return std::unexpected(std::move(deliveries.error()));
  return std::move(deliveries->front());
}

Failure Gate::abandon(Failure cause) {
  collectives_.abandon(cause.error.message);
  cause.is_broken = true;
  break_with(cause);
  return cause;
}

// What is known first, since there may be no memory for the words.
void Gate::break_with(const Failure& cause) {
  broken_.emplace();
  broken_ = cause;
}

// From the moment when all ranks have succeeded this needs no memory.
Outcome<std::vector<Delivery>> Gate::compile_all(std::span<Demand> demands) {
  if (broken_) {
    Error error{ErrorKind::kBroken, "this communicator is broken since an earlier call: " + broken_->error.message,
                broken_->error.thing, "end the program, or open a context over another communicator"};
    return std::unexpected(Failure{std::move(error), broken_->ranks, true});
  }
  ++sequence_;
  try {
    return take_part(demands);
  } catch (const std::bad_alloc&) {  // between two collective steps: this rank is out of step with the others for good
    return std::unexpected(abandon({no_memory("to go on", {}), {}}));
  }
}

Outcome<std::vector<Delivery>> Gate::take_part(std::span<Demand> demands) {
  Local local = local_step(demands);
  const Ranks ranks{collectives_.rank(), collectives_.size(), options_.node, milliseconds_of(options_.pacing.silence)};
  View view = take_view(local);
  Run run{std::move(local), Protocol(ranks, std::move(view), std::move(leaders_)),
          LeaderWork(services_.store, services_.compiler, services_.recorder)};
  Outcome<void> done = perform_all(run);
  leaders_ = run.protocol.take_leaders();
  // Whoever has agreed, also when the call fails: the next one may find out that a rank skipped this one.
  // Texts of which one was adopted may well change places.
  if (run.protocol.has_adopted())
    previous_.clear();
  else if (run.protocol.has_agreed())
    for (std::size_t i = 0; i < previous_.size(); ++i) previous_[i] = run.local.wanted[run.local.places[i]].request;
  if (!done) {
    if (done.error().is_broken) break_with(done.error());
    return std::unexpected(std::move(done.error()));
  }
  deliver(run.local);
  return std::move(run.local.deliveries);
}

Outcome<void> Gate::perform_all(Run& run) {
  Action next = run.protocol.begin();
  for (;;) {
    Outcome<Action> then = std::visit(
        [&](auto& todo) -> Outcome<Action> {
          if constexpr (std::is_same_v<decltype(todo), action::Finish&>) {
            return std::move(todo);
          } else {
            return perform(run, todo);
          }
        },
        next);
    if (!then) return std::unexpected(std::move(then.error()));
    next = std::move(*then);
    if (auto* finish = std::get_if<action::Finish>(&next)) {
      if (finish->failure) return std::unexpected(std::move(*finish->failure));
      return {};
    }
  }
}

void Gate::deliver(Local& local) {
  for (std::size_t i = 0; i < local.calls.size(); ++i) {
    const Local::Wanted& wanted = local.wanted[local.places[i]];
    Delivery& delivery = local.deliveries[i];
    delivery.module = wanted.module;
    delivery.manifest = std::move(local.calls[i].manifest);
    delivery.request = wanted.request;
    delivery.origin = wanted.last.origin;
    delivery.is_merged = wanted.last.is_merged != 0;
    delivery.has_made_code = wanted.last.has_made_code != 0;
    delivery.compile_seconds = wanted.last.compile_seconds;
    delivery.peak_bytes = wanted.last.peak_bytes;
  }
}

// ---- local --------------------------------------------------------------------------------------------------------

Gate::Local Gate::local_step(std::span<Demand> demands) {
  try {
    std::vector<Call> calls;
    std::vector<Local::Source> sources;
    previous_.resize(demands.size());
    for (std::size_t i = 0; i < demands.size(); ++i) {
      Demand& demand = demands[i];
      if (!demand.request) return failed_locally(std::move(demand.request.error()));
      if (i == 0) name_ = (*demand.request)->name;
      if (const auto& checked = demand.request->checked(); !checked) return failed_locally(checked.error());
      calls.push_back({sequence_, previous_[i], std::move(*demand.request), std::move(demand.manifest)});
      sources.push_back({std::move(demand.make_code), demand.origin_is_source});
    }
    if (calls.empty()) return failed_locally({ErrorKind::kUsage, "no module is asked for", {}, "ask for at least one"});
    Local local = look_into_table(std::move(calls));
    local.sources = std::move(sources);
    local.deliveries.resize(demands.size());
    for (std::size_t i = 0; i < previous_.size(); ++i) previous_[i] = local.wanted[local.places[i]].request;
    return local;
  } catch (const std::bad_alloc&) {
    return failed_locally(no_memory("for the request", {}));
  }
}

// This rank has nothing to compare with in the next call.
Gate::Local Gate::failed_locally(Error error) {
  previous_.clear();
  Local local;
  local.view.error = std::move(error);
  local.view.is_strict = !options_.adopts_root;
  local.view.isa = options_.host_isa;
  return local;
}

// Of what must be equal on all ranks, but for the call's number. Solvers ask for the same module again and again.
const common::Digest& Gate::digest_of(const Call& call, std::size_t place) {
  if (last_digested_.size() <= place) last_digested_.resize(place + 1);
  Digested& last = last_digested_[place];
  const common::Digest& request = call.request.digest();
  if (last.request != request || last.manifest != call.manifest)
    last = {request, call.manifest, call_digest(request, call.manifest)};
  return last.both;
}

Gate::Local Gate::look_into_table(std::vector<Call> calls) {
  Local local;
  local.view.is_strict = !options_.adopts_root;
  local.view.isa = options_.host_isa;
  std::vector<common::Digest> digests;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const common::Digest& request = calls[i].request.digest();
    digests.push_back(digest_of(calls[i], i));
    const auto known = std::ranges::find(local.wanted, request, &Local::Wanted::request);
    local.places.push_back(static_cast<std::size_t>(known - local.wanted.begin()));
    if (known != local.wanted.end()) continue;
    local.wanted.push_back({i, request, services_.modules.find(request), {}});
    local.view.modules.push_back(
        {calls[i].request->name, local.wanted.back().module != nullptr, common::is_of_a_node(*calls[i].request)});
  }
  local.view.call = numbered(digest_of_all(digests), calls.front().sequence);
  local.calls = std::move(calls);
  return local;
}

// With the keys of what is held.
View Gate::take_view(Local& local) {
  for (std::size_t i = 0; i < local.view.modules.size(); ++i)
    if (const auto& module = local.wanted[i].module) local.view.modules[i].key = module->key();
  return std::move(local.view);
}

// The root's calls, looked up, in place of this rank's; or how they differ.
Result<View> Gate::adopt(Local& local, const action::Compare& compare) {
  try {
    Result<std::vector<Call>> root = decode_calls(compare.roots);
    if (!root) return std::unexpected(std::move(root.error()));
    if (compare.is_strict || !is_adoptable(local.calls, *root))
      if (std::optional<Error> error = difference(local.calls, *root)) return std::unexpected(std::move(*error));
    Local adopted = look_into_table(std::move(*root));
    adopted.sources = std::move(local.sources);  // the root's makes the code of the root's request
    adopted.deliveries = std::move(local.deliveries);
    local = std::move(adopted);
    return take_view(local);
  } catch (const std::bad_alloc&) {
    return std::unexpected(no_memory("for the root's version of the request", {}));
  }
}

// ---- what the protocol says -----------------------------------------------------------------------------------------

Outcome<Action> Gate::perform(Run& run, action::Reduce& reduce) {
  const Waits waits = reduce.is_arrival ? Waits::kForArrival : Waits::kForASign;
  const std::string now = step(run);
  if (auto done = collectives_.all_or(reduce.words, now, waits); !done) return std::unexpected(std::move(done.error()));
  Action next = run.protocol.reduced(reduce.words);
  if (const auto* finish = std::get_if<action::Finish>(&next); finish && !finish->failure)
    if (auto done = collectives_.confirm(run.protocol.least_patience(), now, waits); !done)
      return std::unexpected(std::move(done.error()));
  return next;
}

Outcome<Action> Gate::perform(Run& run, action::Broadcast& broadcast) {
  if (broadcast.is_sized) {
    const Outcome<bool> taken = collectives_.broadcast_sized(broadcast.bytes, broadcast.from, step(run));
    if (!taken) return std::unexpected(taken.error());
    if (!*taken) return run.protocol.broadcast({});
  } else if (auto done = collectives_.broadcast(broadcast.bytes, broadcast.from, step(run)); !done) {
    return std::unexpected(std::move(done.error()));
  }
  return run.protocol.broadcast(std::move(broadcast.bytes));
}

Outcome<Action> Gate::perform(Run& run, action::Receive& receive) {
  std::string bytes;
  const Outcome<bool> taken = collectives_.receive(bytes, receive.size, receive.from, step(run));
  if (!taken) return std::unexpected(taken.error());
  if (!*taken) return run.protocol.received({});
  return run.protocol.received(std::move(bytes));
}

Outcome<Action> Gate::perform(Run& run, action::Post& post) {
  if (auto done = collectives_.post(std::move(post.bytes), step(run)); !done)
    return std::unexpected(std::move(done.error()));
  return run.protocol.done();
}

Outcome<Action> Gate::perform(Run& run, action::Settle&) {
  if (auto done = collectives_.settle(step(run)); !done) return std::unexpected(std::move(done.error()));
  return run.protocol.done();
}

Outcome<Action> Gate::perform(Run& run, action::Tell& news) {
  tell(name_of(run.local, news.module), progress_of(news.beat));
  return run.protocol.done();
}

Outcome<Action> Gate::perform(Run& run, action::Pack&) { return run.protocol.packed(encode(run.local.calls)); }

Outcome<Action> Gate::perform(Run& run, action::Compare& compare) {
  return run.protocol.compared(adopt(run.local, compare));
}

Outcome<Action> Gate::perform(Run& run, action::Begin& begin) {
  run.begun = std::move(begin.modules);
  try {
    std::vector<LeaderWork::Order> orders;
    for (const std::size_t module : run.begun) {
      const Local::Wanted& wanted = run.local.wanted[module];
      // What the root holds serves the others, unless it was made for a better CPU than all have.
      if (wanted.module && begin.work != Work::kCompile && !(wanted.module->isa_needed() & ~begin.common_isa)) {
        if (Result<std::string> bytes = wanted.module->bytes()) {
          run.work.settle(module, Obtained{std::move(*bytes), wanted.module->key(), Origin::kRank});
          continue;
        }
      }
      orders.push_back(order_of(run, module, begin.common_isa));
    }
    run.work.begin(begin.work, std::move(orders));
  } catch (const std::bad_alloc&) {
    run.work.fail(run.begun, no_memory("for the request", name_of(run.local, run.begun.front())));
  }
  return run.protocol.done();
}

LeaderWork::Order Gate::order_of(const Run& run, std::size_t module, common::IsaMask common_isa) const {
  const std::size_t call = run.local.wanted[module].first;
  LeaderWork::Order order{module, *run.local.calls[call].request, run.local.sources[call].make_code,
                          run.local.sources[call].origin_is_source};
  if (order.request.isa_wish == "common") order.request.isa_level = common::isa_level_of(common_isa);
  return order;
}

Outcome<Action> Gate::perform(Run& run, action::Await& await) {
  const nanoseconds beat = beat_for(await.patience, options_.pacing);
  if (!run.waiting) run.waiting.emplace(beat);
  while (RootWork* work = run.work.awaited(await)) {
    const Outcome<bool> ended = wait_for(run, *work, name_of(run.local, await.module));
    if (!ended) return std::unexpected(ended.error());
    if (!*ended) {
      rpc::Progress progress = work->progress();
      progress.seconds = run.waiting->seconds();
      tell(name_of(run.local, await.module), progress);
      run.waiting->beat = steady_clock::now() + beat;  // no burst after this process was stopped
      return run.protocol.beat_due(waiting_beat(progress));
    }
    run.work.collect();
    run.waiting->silence = {};
  }
  const double seconds = run.waiting->seconds();
  run.waiting.reset();
  if (await.is_look_up) return run.protocol.looked_up(found(run), seconds);
  Result<Obtained> obtained = run.work.take(await.module);
  if (!obtained) obtained = std::unexpected(of_this_rank(std::move(obtained.error())));
  return run.protocol.obtained(std::move(obtained), seconds);
}

Result<std::vector<bool>> Gate::found(const Run& run) const {
  try {
    Result<std::vector<bool>> found = run.work.found(run.begun);
    if (!found) return std::unexpected(of_this_rank(std::move(found.error())));
    return found;
  } catch (const std::bad_alloc&) {
    return std::unexpected(no_memory("for the look-up", {}));
  }
}

// What went wrong on the leader's node says where that is, to ranks that may be on others.
Error Gate::of_this_rank(Error error) const {
  if (collectives_.size() == 1 || !is_of_the_node(error.kind)) return error;
  with_memory([&] {  // else it is told without
    error.message = "rank " + std::to_string(collectives_.rank()) + " on " + host_name() + ": " + error.message;
  });
  return error;
}

// True: the work has ended; false: a beat is due.
Outcome<bool> Gate::wait_for(Run& run, RootWork& work, const std::string& name) {
  const nanoseconds limit = options_.pacing.silence;
  Waiting& waiting = *run.waiting;
  for (;;) {
    const Outcome<bool> is_quiet = collectives_.advance(step(run));  // every rank has taken every beat
    if (!is_quiet) return std::unexpected(is_quiet.error());
    if (work.wait_until(*is_quiet ? waiting.beat : std::min(waiting.beat, steady_clock::now() + kAdvance))) return true;
    // The compiler keeps its own limits; a file system that hangs has none.
    if (limit.count() > 0 && waiting.silence.so_far() >= limit && !work.has_reported()) {
      work.abandon(common::fail(ErrorKind::kTimedOut, "the store does not answer", name,
                                "is a file system hung? 'jitc config' shows where store and runtime directory are"));
      return true;
    }
    if (steady_clock::now() >= waiting.beat) return false;
  }
}

Outcome<Action> Gate::perform(Run& run, action::Load& todo) {
  Local::Wanted& wanted = run.local.wanted[todo.module];
  tell(name_of(run.local, todo.module), {rpc::Progress::Phase::kLoading, 0, todo.last.seconds, 0});
  Result<std::shared_ptr<loader::Module>> module = load(wanted, todo);
  if (!module) return run.protocol.loaded(std::move(module.error()));
  wanted.module = std::move(*module);
  wanted.last = todo.last;
  return run.protocol.loaded({});
}

Result<std::shared_ptr<loader::Module>> Gate::load(const Local::Wanted& wanted, const action::Load& todo) const {
  const common::Digest& key = todo.last.key;
  try {
    Result<std::shared_ptr<loader::Module>> module = wanted.module;
    if (!wanted.module || wanted.module->key() != key) {
      if (!todo.bytes)
        return std::unexpected(
            no_memory("to receive the module (" + std::to_string(todo.last.size) + " bytes)", key.hex()));
      module = loader::Module::load(*todo.bytes, &key, {options_.host_isa, options_.stage_dir});
    }
    if (module) services_.modules.insert(wanted.request, *module);
    return module;
  } catch (const std::bad_alloc&) {  // under an address-space limit this is where a rank runs out of it
    return std::unexpected(no_memory("to load the module", key.hex()));
  }
}

// -------------------------------------------------------------------------------------------------------------------

// Words for an error that may come.
std::string Gate::step(const Run& run) const {
  try {
    return run.protocol.waits_for() + " call " + std::to_string(sequence_);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

const std::string& Gate::name_of(const Local& local, std::size_t module) {
  return local.calls[local.wanted[module].first].request->name;
}

void Gate::tell(const std::string& name, const rpc::Progress& progress) const {
  if (on_progress_) with_memory([&] { on_progress_(name, progress); });  // news are worth no failure
}

}  // namespace jitc::gate
