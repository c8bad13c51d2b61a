#include "daemon/service/compile_call.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <mutex>

namespace jitc::service {
namespace {

constexpr std::chrono::seconds kSystemHeadersPeriod{1};  // a look takes tens of milliseconds

constexpr std::size_t kChunk = std::size_t{1} << 20;

// Events come from the state thread, writes end on gRPC's threads; the queue between them has the only lock. A client
// that reads slowly finds the newest heartbeat, not all of them, and at most one chunk is made at a time.
class CompileCall final : public grpc::ServerWriteReactor<v1::CompileEvent>,
                          public Waiter,
                          public std::enable_shared_from_this<CompileCall> {
 public:
  explicit CompileCall(const Services& services) : services_(services) {}

  // gRPC frees its message with the call, which may be cancelled and over before an I/O thread comes to it: the texts
  // are taken here and now, and are not held twice.
  void begin(std::string client, v1::CompileRequest& request) {
    self_ = shared_from_this();
    counted_ = true;
    client_ = std::move(client);
    request_.Swap(&request);
    asio::post(services_.state, [self = self_] { self->services_.calls_changed(+1); });
    if (request_.has_command()) {
      asio::post(services_.command_io, [self = self_] { self->prepare_command(); });
    } else if (needs_reading()) {
      asio::post(services_.state, [self = self_] { self->await_reading(); });
    } else {
      prepare_later();
    }
  }
  void refuse(const grpc::Status& status) {
    self_ = shared_from_this();
    finishing_ = true;
    Finish(status);
  }

  // ---- Waiter, on the state thread
  void accepted(const common::Digest& key, schedule::FlightId flight) override {
    v1::CompileEvent event;
    event.mutable_accepted()->set_key(key.hex());
    event.mutable_accepted()->set_flight(flight);
    push(std::move(event));
  }
  void queued(std::uint32_t place, std::uint64_t bytes_ahead) override {
    v1::CompileEvent event;
    event.mutable_queued()->set_place(place);
    event.mutable_queued()->set_bytes_ahead(bytes_ahead);
    push(std::move(event));
  }
  void started(std::uint32_t attempt, std::uint64_t limit_bytes) override {
    v1::CompileEvent event;
    event.mutable_started()->set_attempt(attempt);
    event.mutable_started()->set_memory_limit_bytes(limit_bytes);
    push(std::move(event));
  }
  void beat(const Beat& beat) override {
    v1::CompileEvent event;
    event.mutable_heartbeat()->set_elapsed_seconds(beat.elapsed_seconds);
    event.mutable_heartbeat()->set_memory_bytes(beat.memory_bytes);
    event.mutable_heartbeat()->set_place(beat.place);
    event.mutable_heartbeat()->set_bytes_ahead(beat.bytes_ahead);
    event.mutable_heartbeat()->set_elsewhere(beat.elsewhere);
    push(std::move(event));
  }
  void finished(common::Result<Delivery> result) override {
    v1::CompileEvent last = finished_event(result);
    const bool with_bytes = result && (want_bytes_ || result->product->path.empty());
    {
      const std::lock_guard lock(mutex_);
      if (with_bytes) bytes_ = result->product->bytes;
      last_ = std::make_unique<v1::CompileEvent>(std::move(last));
    }
    write_next();
  }

  // ---- reactions, on gRPC's threads
  void OnWriteDone(bool ok) override {
    {
      const std::lock_guard lock(mutex_);
      writing_ = false;
      if (!ok) gone_ = true;
    }
    write_next();
  }
  void OnCancel() override {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
    }
    // Posted after the submission was, or before: either way the state thread sees both.
    asio::post(services_.state, [self = shared_from_this()] {
      self->left_ = true;
      if (self->waiter_ != 0) self->services_.engine.leave(self->waiter_);
    });
    write_next();
  }
  void OnDone() override {
    if (counted_) asio::post(services_.state, [&services = services_] { services.calls_changed(-1); });
    self_.reset();
  }

 private:
  // Does anything but the request and the embedded compiler enter the key?
  bool needs_reading() const {
    const bool embedded = request_.compiler().empty() || request_.compiler() == "clang";
    return !embedded || !services_.policy.include_roots.empty();
  }

  // On the state thread: the compilers and include roots are read first, which may take long.
  void await_reading() {
    if (left_) return;
    services_.read_installation(
        {.fresh = std::chrono::steady_clock::now() - kSystemHeadersPeriod,
         .beat = [self = shared_from_this()] { self->beat(Beat{.place = 1}); },
         .ready = [self = shared_from_this()] { self->prepare_later(); },
         .failed = [self =
                        shared_from_this()](const common::Error& error) { self->finished(std::unexpected(error)); }});
  }
  void prepare_later() {
    asio::post(services_.io, [self = shared_from_this()] { self->prepare(); });
  }
  void prepare() {
    const auto identity = services_.identity.get();
    auto prepared = service::prepare(std::move(request_), services_.policy, *identity);
    if (!prepared) return finished(std::unexpected(std::move(prepared.error())));
    prepared->identity = identity;
    submit(std::move(*prepared));
  }
  void prepare_command() {
    auto command = command_of(request_.command(), services_.policy.max_source_bytes);
    if (!command) return finished(std::unexpected(std::move(command.error())));
    std::string compiler;
    if (!command->by_caller) {
      auto known = services_.command_compilers.identity(*command);
      if (!known) return finished(std::unexpected(std::move(known.error())));
      compiler = std::move(*known);
    }
    submit(service::prepare(std::move(*command), request_, services_.identity.get(), compiler));
    request_.Clear();
  }
  void submit(Prepared prepared) {
    want_bytes_ = prepared.want_bytes;
    auto shared = std::make_shared<const Prepared>(std::move(prepared));
    const std::string turn = shared->request.job.empty() ? client_ : shared->request.job;
    asio::post(services_.state, [self = shared_from_this(), shared = std::move(shared), turn] {
      self->services_.active();
      if (self->left_) return;
      self->waiter_ = self->services_.engine.submit(self, shared, turn);
    });
  }

  void push(v1::CompileEvent event) {
    {
      const std::lock_guard lock(mutex_);
      const bool replaces = event.has_heartbeat() && !events_.empty() && events_.back().has_heartbeat();
      if (replaces) {
        events_.back() = std::move(event);
      } else {
        events_.push_back(std::move(event));
      }
    }
    write_next();
  }

  enum class Next { kNothing, kWrite, kLast, kGone };
  // What to write next, put into current_; marks this call as writing. The lock is held.
  Next choose() {
    if (writing_ || finishing_) return Next::kNothing;
    if (gone_) {
      finishing_ = true;
      return Next::kGone;
    }
    writing_ = true;
    if (!events_.empty()) {
      current_ = std::move(events_.front());
      events_.pop_front();
      return Next::kWrite;
    }
    if (bytes_ && sent_ < bytes_->size()) {
      current_.set_chunk(bytes_->data() + sent_, std::min(kChunk, bytes_->size() - sent_));
      sent_ += current_.chunk().size();
      return Next::kWrite;
    }
    if (last_) {
      current_ = std::move(*last_);
      finishing_ = true;
      return Next::kLast;
    }
    writing_ = false;
    return Next::kNothing;
  }

  void write_next() {
    Next next;
    {
      const std::lock_guard lock(mutex_);
      next = choose();
    }
    // Nobody else starts a write until this one is done, so that current_ is ours without the lock. The call may end,
    // and this object with it, as soon as the last one is started: nothing is touched behind it.
    switch (next) {
      case Next::kNothing:
        return;
      case Next::kWrite:
        return StartWrite(&current_);
      case Next::kLast:
        return StartWriteAndFinish(&current_, grpc::WriteOptions(), grpc::Status::OK);
      case Next::kGone:
        return Finish(grpc::Status::CANCELLED);
    }
  }

  const Services& services_;
  std::shared_ptr<CompileCall> self_;  // until OnDone
  bool counted_ = false;               // among the calls that a drain waits for
  std::string client_;
  v1::CompileRequest request_;  // until it is prepared
  bool want_bytes_ = false;     // set before the submission

  // State thread only.
  schedule::WaiterId waiter_ = 0;
  bool left_ = false;

  std::mutex mutex_;
  std::deque<v1::CompileEvent> events_;
  std::shared_ptr<const std::string> bytes_;
  std::size_t sent_ = 0;
  std::unique_ptr<v1::CompileEvent> last_;
  v1::CompileEvent current_;
  bool writing_ = false;
  bool finishing_ = false;
  bool gone_ = false;
};

}  // namespace

grpc::ServerWriteReactor<v1::CompileEvent>* start_compile_call(const Services& services,
                                                               const grpc::CallbackServerContext& context,
                                                               const v1::CompileRequest& request) {
  auto call = std::make_shared<CompileCall>(services);
  const auto peer = services.peers.find(context.peer());
  if (!peer) {
    call->refuse(to_status({common::ErrorKind::kRefused, "this connection's user is not known", context.peer()}));
    return call.get();
  }
  // gRPC makes the message for this call alone and hands it out as const by convention only.
  call->begin("pid:" + std::to_string(peer->pid), const_cast<v1::CompileRequest&>(request));
  return call.get();
}

}  // namespace jitc::service
