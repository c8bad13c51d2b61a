#include "client/gate/gate.h"

#include <algorithm>
#include <new>
#include <utility>

#include "client/gate/divergence.h"
#include "client/gate/silence.h"

namespace jitc::gate {
namespace {

using common::Error;
using common::ErrorKind;
using common::Result;
using std::chrono::steady_clock;

// How often the root progresses beats that slow ranks have not taken yet: MPI moves only when it is called.
constexpr std::chrono::milliseconds kAdvance{20};
// So many failing ranks say why; of the others only the number is known.
constexpr std::size_t kReasons = 4;

common::Digest digest_of(const Call& call, const common::Digest& request) {
  return common::Hasher("jitc call 1")
      .digest("request", request)
      .text("manifest", call.manifest)
      .number("sequence", call.sequence)
      .finish();
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

Error no_memory(std::string what, std::string thing) {
  return {ErrorKind::kNotLoaded, "no memory " + std::move(what), std::move(thing),
          "raise this rank's memory limit (ulimit -v)"};
}

// The root's look-up and compile, for the helper thread; it owns what it uses.
RootWork::Task look_up_or_compile(std::shared_ptr<StoreLookup> store, std::shared_ptr<Compiler> compiler,
                                  common::Request request, MakeCode make_code, bool origin_is_source) {
  return [store = std::move(store), compiler = std::move(compiler), request = std::move(request),
          make_code = std::move(make_code), origin_is_source](const Report& report) -> Result<Obtained> {
    if (std::optional<Obtained> found = store->look_up(request)) return std::move(*found);
    if (!report({})) return common::fail(ErrorKind::kCancelled, "nobody waits any more", request.name);
    if (!make_code) return compiler->compile(request, report);
    Result<std::string> code = make_code(request);
    if (!code) return std::unexpected(std::move(code.error()));
    common::Request with_code = request;
    with_code.code = std::move(*code);
    Result<Obtained> obtained = compiler->compile(with_code, report);
    if (origin_is_source && !obtained && common::fall_back_to_origin(with_code, obtained.error()))
      obtained = compiler->compile(with_code, report);
    if (obtained) obtained->has_made_code = !with_code.code.empty();
    return obtained;
  };
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
    bytes = common::to_json(bounded(std::move(obtained.error())));
  }
  beat.size = bytes.size();
  return {beat, std::move(bytes)};
}

}  // namespace

Gate::Gate(const jitc_communicator& communicator, GateOptions options, GateServices services, OnProgress on_progress)
    : collectives_(communicator, options.pacing,
                   [this](double seconds) { tell(name_, {rpc::Progress::Phase::kArriving, 0, seconds, 0}); }),
      options_(std::move(options)),
      services_(services),
      on_progress_(std::move(on_progress)) {}

Outcome<Delivery> Gate::compile(Demand demand) {
  if (broken_) {
    Error error{ErrorKind::kBroken, "this communicator is broken since an earlier call: " + broken_->error.message,
                broken_->error.thing, "end the program, or open a context over another communicator"};
    return std::unexpected(Failure{std::move(error), broken_->ranks, true});
  }
  ++sequence_;
  Outcome<Delivery> outcome = run(local_step(std::move(demand)));
  if (!outcome && outcome.error().is_broken) broken_ = outcome.error();
  return outcome;
}

Failure Gate::abandon(Failure cause) {
  collectives_.abandon();
  cause.is_broken = true;
  broken_ = cause;
  return cause;
}

Outcome<Delivery> Gate::run(Local local) {
  previous_ = local.request;  // also when the call fails: the next one may find out that a rank skipped this one
  const Outcome<Verdict> verdict = agree(local);
  if (!verdict) return std::unexpected(verdict.error());
  previous_ = local.request;  // the root's, where it was adopted
  if (verdict->someone_needs) return hand_off(local, verdict->common_isa);
  return Delivery{std::move(local.module), std::move(local.call->manifest), local.request};
}

// ---- step 1 -------------------------------------------------------------------------------------------------------

Gate::Local Gate::local_step(Demand demand) {
  try {
    if (!demand.request) return {std::unexpected(std::move(demand.request.error())), {}, {}, nullptr};
    name_ = demand.request->name;
    if (auto checked = common::check_request(*demand.request); !checked)
      return {std::unexpected(std::move(checked.error())), {}, {}, nullptr};
    Local local = look_into_table({sequence_, previous_, std::move(*demand.request), std::move(demand.manifest)});
    local.make_code = std::move(demand.make_code);
    local.origin_is_source = demand.origin_is_source;
    return local;
  } catch (const std::bad_alloc&) {
    return {std::unexpected(no_memory("for the request", {})), {}, {}, nullptr};
  }
}

// Solvers ask for the same module again and again, and the digest would cost most of such a call.
const common::Digest& Gate::digest_of_request(const common::Request& request) {
  if (!last_digested_ || last_digested_->request != request)
    last_digested_ = Digested{request, common::request_digest(request)};
  return last_digested_->digest;
}

Gate::Local Gate::look_into_table(Call call) {
  const common::Digest request = digest_of_request(call.request);
  const common::Digest digest = digest_of(call, request);
  return {std::move(call), request, digest, services_.modules.find(request)};
}

// ---- step 2 -------------------------------------------------------------------------------------------------------

Certificate Gate::certify(const Local& local) const {
  Certificate certificate;
  certificate.is_strict = !options_.adopts_root;
  certificate.isa = options_.host_isa;
  if (local.call) {
    certificate.needs = !local.module;
    certificate.call = local.digest;
  } else {
    certificate.error = local.call.error().kind;
  }
  return certificate;
}

Outcome<Verdict> Gate::agree(Local& local) {
  Waits waits = Waits::kForArrival;
  for (;;) {
    CertificateWords words = certify(local).words();
    if (auto done = collectives_.all_or(words, step("for all ranks to begin"), waits); !done)
      return std::unexpected(std::move(done.error()));
    const Verdict verdict = judge(words);
    if (verdict.someone_failed) {
      const Error* mine = local.call ? nullptr : &local.call.error();
      if (auto shared = share_errors(mine, "for the errors of"); !shared)
        return std::unexpected(std::move(shared.error()));
    }
    if (verdict.all_alike) return verdict;
    // Once only: after it either all have failed or all have the root's call.
    if (auto settled = settle_divergence(local, verdict); !settled) return std::unexpected(std::move(settled.error()));
    waits = Waits::kForASign;
  }
}

Outcome<void> Gate::settle_divergence(Local& local, const Verdict& verdict) {
  std::string packed;
  if (collectives_.is_root()) packed = encode(*local.call);
  if (auto done = collectives_.broadcast_sized(packed, 0, step("for the root's version of")); !done) return done;

  std::optional<Error> mine;
  std::optional<Local> adopted;
  try {
    Result<Call> root = decode_call(packed);
    if (!root) {
      mine = std::move(root.error());
    } else if (verdict.someone_is_strict || !is_adoptable(*local.call, *root)) {
      mine = difference(*local.call, *root);
    } else {
      adopted = look_into_table(std::move(*root));
    }
  } catch (const std::bad_alloc&) {
    mine = no_memory("for the root's version of the request", {});
  }
  if (auto shared = share_errors(mine ? &*mine : nullptr, "for the differences in"); !shared) return shared;
  adopted->origin_is_source = local.origin_is_source;
  adopted->make_code = std::move(local.make_code);  // the root's makes the code of the root's request
  local = std::move(*adopted);
  return {};
}

// ---- step 3 -------------------------------------------------------------------------------------------------------

// After the last share_errors nothing may fail: the other ranks have been told that all is well.
Outcome<Delivery> Gate::hand_off(Local& local, common::IsaMask common_isa) {
  const std::string& name = local.call->request.name;
  Outcome<Received> received = collectives_.is_root() ? send(local, common_isa) : receive(name);
  if (!received) return std::unexpected(std::move(received.error()));
  const Beat& last = received->last;
  if (last.state == Beat::State::kFailed) return std::unexpected(Failure{common::error_from_json(received->bytes), {}});

  tell(name, {rpc::Progress::Phase::kLoading, 0, last.seconds, 0});
  Result<std::shared_ptr<loader::Module>> module = load(local, *received);
  if (auto all = share_errors(module ? nullptr : &module.error(), "for all ranks to load"); !all)
    return std::unexpected(std::move(all.error()));
  return Delivery{.module = std::move(*module),
                  .manifest = std::move(local.call->manifest),
                  .request = local.request,
                  .origin = last.origin,
                  .is_merged = last.is_merged != 0,
                  .has_made_code = last.has_made_code != 0,
                  .compile_seconds = last.compile_seconds,
                  .peak_bytes = last.peak_bytes};
}

Outcome<Gate::Received> Gate::send(Local& local, common::IsaMask common_isa) {
  const steady_clock::time_point start = steady_clock::now();
  Outcome<Result<Obtained>> obtained = obtain(local, common_isa);
  if (!obtained) return std::unexpected(std::move(obtained.error()));
  auto [last, bytes] = last_beat(std::move(*obtained));
  last.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
  const std::string what = step("for all ranks to take");
  if (auto done = collectives_.post(encode(last), what); !done) return std::unexpected(std::move(done.error()));
  if (auto done = collectives_.broadcast(bytes, 0, what); !done) return std::unexpected(std::move(done.error()));
  if (auto done = collectives_.settle(what); !done) return std::unexpected(std::move(done.error()));
  return Received{last, std::move(bytes)};
}

Outcome<Gate::Received> Gate::receive(const std::string& name) {
  const std::string what = step("for a sign of rank 0, which compiles");
  for (;;) {
    std::string packed(sizeof(Beat), '\0');
    if (auto done = collectives_.broadcast(packed, 0, what); !done) return std::unexpected(std::move(done.error()));
    const Beat beat = decode_beat(packed);
    if (beat.state == Beat::State::kWaiting) {
      tell(name, progress_of(beat));
      continue;
    }
    std::string bytes;
    const Outcome<bool> taken = collectives_.receive(bytes, beat.size, 0, step("for the result of"));
    if (!taken) return std::unexpected(taken.error());
    return Received{beat, std::move(bytes), *taken};
  }
}

// The outer outcome fails when the communicator does; the inner result is the root's, for everybody.
Outcome<Result<Obtained>> Gate::obtain(Local& local, common::IsaMask common_isa) {
  const std::string& name = local.call->request.name;
  std::optional<RootWork> work;
  try {
    // What the root holds serves the others, unless it was made for a better CPU than all have.
    if (local.module && !(local.module->isa_needed() & ~common_isa)) {
      if (Result<std::string> bytes = local.module->bytes())
        return Obtained{std::move(*bytes), local.module->key(), Origin::kRank};
    }
    common::Request request = local.call->request;
    if (request.isa_wish == "common") request.isa_level = common::isa_level_of(common_isa);
    work.emplace(look_up_or_compile(services_.store, services_.compiler, std::move(request), std::move(local.make_code),
                                    local.origin_is_source));
  } catch (const std::bad_alloc&) {
    return Result<Obtained>(std::unexpected(no_memory("on rank 0", name)));
  }
  return wait_for(*work, name);
}

Outcome<Result<Obtained>> Gate::wait_for(RootWork& work, const std::string& name) {
  const steady_clock::time_point start = steady_clock::now();
  const std::chrono::nanoseconds limit = options_.pacing.silence;
  Silence silence;
  steady_clock::time_point beat = start + options_.pacing.beat;
  bool is_quiet = true;  // every rank has taken every beat
  while (!work.wait_until(is_quiet ? beat : std::min(beat, steady_clock::now() + kAdvance))) {
    const std::string what = step("for ranks to hear of");
    if (steady_clock::now() >= beat) {
      rpc::Progress progress = work.progress();
      progress.seconds = std::chrono::duration<double>(steady_clock::now() - start).count();
      tell(name, progress);
      if (auto done = collectives_.post(encode(waiting_beat(progress)), what); !done)
        return std::unexpected(std::move(done.error()));
      beat = steady_clock::now() + options_.pacing.beat;  // not a burst of them after this process was stopped
    }
    Outcome<bool> advanced = collectives_.advance(what);
    if (!advanced) return std::unexpected(std::move(advanced.error()));
    is_quiet = *advanced;
    // The compiler keeps its own limits; a file system that hangs has none.
    if (limit.count() > 0 && silence.so_far() >= limit && !work.has_reported()) {
      work.abandon();
      return Result<Obtained>(
          common::fail(ErrorKind::kTimedOut, "rank 0 waits for the store, which does not answer", name,
                       "is a file system hung? 'jitc config' shows where store and runtime directory are"));
    }
  }
  return work.take();
}

// ---- steps 4 and 5 ------------------------------------------------------------------------------------------------

Result<std::shared_ptr<loader::Module>> Gate::load(const Local& local, const Received& received) const {
  const common::Digest& key = received.last.key;
  try {
    if (!received.has_bytes)
      return std::unexpected(
          no_memory("to receive the module (" + std::to_string(received.last.size) + " bytes)", key.hex()));
    Result<std::shared_ptr<loader::Module>> module = local.module;
    if (!local.module || local.module->key() != key)
      module = loader::Module::load(received.bytes, &key, {options_.host_isa, options_.stage_dir});
    if (module) services_.modules.insert(local.request, *module);
    return module;
  } catch (const std::bad_alloc&) {  // under an address-space limit this is where a rank runs out of it
    return std::unexpected(no_memory("to load the module", key.hex()));
  }
}

Outcome<void> Gate::share_errors(const Error* mine, const std::string& what) {
  const std::string wait = step(what);
  std::vector<std::uint64_t> failing((static_cast<std::size_t>(collectives_.size()) + 63) / 64);
  const auto own = static_cast<std::size_t>(collectives_.rank());
  if (mine) failing[own / 64] |= std::uint64_t{1} << (own % 64);
  if (auto done = collectives_.all_or(failing, wait); !done) return done;

  std::vector<int> ranks;
  for (int rank = 0; rank < collectives_.size(); ++rank)
    if (failing[static_cast<std::size_t>(rank) / 64] >> (rank % 64) & 1) ranks.push_back(rank);
  if (ranks.empty()) return {};

  Reasons reasons;
  for (std::size_t i = 0; i < std::min(ranks.size(), kReasons); ++i) {
    std::string text;
    if (ranks[i] == collectives_.rank()) text = common::to_json(bounded(*mine));
    if (auto done = collectives_.broadcast_sized(text, ranks[i], wait); !done) return done;
    reasons.push_back(common::error_from_json(text));
  }
  return std::unexpected(join_errors(std::move(ranks), reasons, collectives_.size()));
}

std::string Gate::step(const std::string& what) const { return what + " call " + std::to_string(sequence_); }

void Gate::tell(const std::string& name, const rpc::Progress& progress) const {
  if (on_progress_) on_progress_(name, progress);
}

}  // namespace jitc::gate
