// Ranks as threads of one process, with the exact semantics of non-blocking collectives: operations match in the order
// in which each rank starts them; a reduction completes when all ranks have started it, a broadcast when its root has;
// receivers' buffers are written by their own `test`. Ranks that start different operations get an error, as the most
// helpful MPI would give. Messages between two ranks match in order; a send completes when its receive has been
// started, which is the latest that MPI allows.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "client/include/jitc/jitc.h"

namespace jitc::testing {

class SimulatedWorld {
 public:
  static constexpr int kMismatch = 77;
  static constexpr int kLost = 78;
  static constexpr int kTruncated = 79;
  static constexpr int kNotStarted = 80;

  enum class Start { kReduce, kBroadcast, kSend, kReceive };

  explicit SimulatedWorld(int size) {
    operations_.reserve(kExpected);
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(std::make_unique<Rank>(Rank{this, rank, 0, {}, {}}));
      ranks_.back()->receive.reserve(kExpected);
    }
  }

  int size() const { return static_cast<int>(ranks_.size()); }

  jitc_communicator communicator(int rank) {
    jitc_communicator table{};
    table.size = sizeof table;
    table.state = ranks_[static_cast<std::size_t>(rank)].get();
    table.rank = rank;
    table.ranks = size();
    table.iallreduce_or = [](void* state, const std::uint64_t* send, std::uint64_t* receive, std::size_t count,
                             jitc_pending* pending) {
      auto* self = static_cast<Rank*>(state);
      return self->world->start(*self, Kind::kReduce, 0, send, receive, count * sizeof *send, pending);
    };
    table.ibcast = [](void* state, void* buffer, std::size_t bytes, int root, jitc_pending* pending) {
      auto* self = static_cast<Rank*>(state);
      return self->world->start(*self, Kind::kBroadcast, root, buffer, buffer, bytes, pending);
    };
    table.test = [](void* state, jitc_pending* pending, int* done) {
      auto* self = static_cast<Rank*>(state);
      return self->world->test(*self, pending, done);
    };
    table.release = [](void* state) {
      auto* self = static_cast<Rank*>(state);
      const std::lock_guard lock(self->world->mutex_);
      ++self->world->released_;
    };
    table.isend = [](void* state, const void* buffer, std::size_t bytes, int to, jitc_pending* pending) {
      auto* self = static_cast<Rank*>(state);
      return self->world->send(*self, to, {static_cast<const char*>(buffer), bytes}, pending);
    };
    table.irecv = [](void* state, void* buffer, std::size_t bytes, int from, jitc_pending* pending) {
      auto* self = static_cast<Rank*>(state);
      return self->world->receive(*self, from, buffer, bytes, pending);
    };
    table.iprobe = [](void* state, int* is_there) {
      auto* self = static_cast<Rank*>(state);
      *is_there = self->world->has_message_for(self->rank);
      return 0;
    };
    return table;
  }

  // Operations that any rank has started so far.
  std::size_t operations() const {
    const std::lock_guard lock(mutex_);
    return operations_.size();
  }
  // A rank is gone for good: what still waits for it fails, as with an MPI that notices.
  void lose_a_rank() {
    const std::lock_guard lock(mutex_);
    has_lost_rank_ = true;
  }
  // Of the operations of this kind that this rank starts from now on, one cannot be started, after so many that can.
  // Nobody else notices.
  void fail_start(int rank, Start kind, int spared = 0) {
    const std::lock_guard lock(mutex_);
    ranks_[static_cast<std::size_t>(rank)]->failing = {kind, spared};
  }
  // Has it come to that?
  bool has_failed_start() const {
    const std::lock_guard lock(mutex_);
    return has_failed_start_;
  }
  // Waits until ranks have sent so many messages; false: they have not within a minute.
  bool wait_for_messages(int count) {
    std::unique_lock lock(mutex_);
    return has_sent_.wait_for(lock, std::chrono::minutes(1), [&] { return sent_ >= count; });
  }
  int released() const {
    const std::lock_guard lock(mutex_);
    return released_;
  }

 private:
  enum class Kind { kReduce, kBroadcast };
  struct Rank {
    SimulatedWorld* world;
    int rank;
    std::size_t next;
    std::vector<void*> receive;  // by operation
    std::optional<std::pair<Start, int>> failing;
  };
  struct Operation {
    Kind kind;
    int root;
    std::size_t bytes;
    int started = 0;
    bool is_ready = false;
    std::string data;  // the OR so far, or the root's bytes
  };
  // So many operations take no memory of the rank that starts them first, which may have none.
  static constexpr std::size_t kExpected = 1024;
  static constexpr std::uint64_t kCollective = 0;  // jitc_pending: the index, and of what
  static constexpr std::uint64_t kMessage = 1;
  // From one rank to another.
  struct Channel {
    std::vector<std::string> sent;
    std::size_t received = 0;  // receives that have been started
  };
  struct Transfer {
    Channel* channel;
    std::size_t place;  // among the channel's sends or receives
    void* buffer;       // null: a send
    std::size_t bytes;
  };

  bool fails(Rank& self, Start kind) {
    if (!self.failing || self.failing->first != kind || self.failing->second-- > 0) return false;
    self.failing.reset();
    has_failed_start_ = true;
    return true;
  }

  int start(Rank& self, Kind kind, int root, const void* send, void* receive, std::size_t bytes,
            jitc_pending* pending) {
    const std::lock_guard lock(mutex_);
    if (fails(self, kind == Kind::kReduce ? Start::kReduce : Start::kBroadcast)) return kNotStarted;
    const std::size_t at = self.next++;
    if (at == operations_.size()) operations_.push_back({kind, root, bytes, 0, false, {}});
    Operation& operation = operations_[at];
    if (operation.kind != kind || operation.root != root || operation.bytes != bytes) return kMismatch;
    ++operation.started;
    if (kind == Kind::kReduce) {
      operation.data.resize(bytes);
      for (std::size_t i = 0; i < bytes; ++i) operation.data[i] |= static_cast<const char*>(send)[i];
      operation.is_ready = operation.started == size();
    } else if (self.rank == root) {
      operation.data.assign(static_cast<const char*>(send), bytes);  // no receiver needs memory for it
      operation.is_ready = true;
    }
    self.receive.push_back(receive);
    *pending = {{at, kCollective}};
    return 0;
  }

  int send(Rank& self, int to, std::string data, jitc_pending* pending) {
    {
      const std::lock_guard lock(mutex_);
      if (fails(self, Start::kSend)) return kNotStarted;
      Channel& channel = channels_[{self.rank, to}];
      *pending = {{transfers_.size(), kMessage}};
      transfers_.push_back({&channel, channel.sent.size(), nullptr, 0});
      channel.sent.push_back(std::move(data));
      ++sent_;
    }
    has_sent_.notify_all();
    return 0;
  }

  int receive(Rank& self, int from, void* buffer, std::size_t bytes, jitc_pending* pending) {
    const std::lock_guard lock(mutex_);
    if (fails(self, Start::kReceive)) return kNotStarted;
    Channel& channel = channels_[{from, self.rank}];
    *pending = {{transfers_.size(), kMessage}};
    transfers_.push_back({&channel, channel.received++, buffer, bytes});
    return 0;
  }

  bool has_message_for(int rank) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(channels_, [rank](const auto& channel) {
      return channel.first.second == rank && channel.second.sent.size() > channel.second.received;
    });
  }

  int test_transfer(const Transfer& transfer, int* done) const {
    const Channel& channel = *transfer.channel;
    *done = transfer.place < (transfer.buffer ? channel.sent.size() : channel.received);
    if (!*done) return has_lost_rank_ ? kLost : 0;
    if (!transfer.buffer) return 0;
    const std::string& data = channel.sent[transfer.place];
    if (data.size() > transfer.bytes) return kTruncated;
    std::memcpy(transfer.buffer, data.data(), data.size());
    return 0;
  }

  int test(Rank& self, jitc_pending* pending, int* done) {
    const std::lock_guard lock(mutex_);
    if (pending->opaque[1] == kMessage) return test_transfer(transfers_[pending->opaque[0]], done);
    const Operation& operation = operations_[pending->opaque[0]];
    *done = operation.is_ready;
    if (!operation.is_ready && has_lost_rank_) return kLost;
    const bool is_sender = operation.kind == Kind::kBroadcast && operation.root == self.rank;
    if (operation.is_ready && !is_sender)
      std::memcpy(self.receive[pending->opaque[0]], operation.data.data(), operation.bytes);
    return 0;
  }

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Operation> operations_;
  std::map<std::pair<int, int>, Channel> channels_;
  std::vector<Transfer> transfers_;
  std::condition_variable has_sent_;
  int sent_ = 0;
  int released_ = 0;
  bool has_lost_rank_ = false;
  bool has_failed_start_ = false;
};

// Runs `body(rank)` on one thread per rank and waits for all.
inline void on_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

}  // namespace jitc::testing
