// Ranks as threads of one process, with the exact semantics of non-blocking collectives: operations match in the order
// in which each rank starts them; a reduction completes when all ranks have started it, a broadcast when its root has;
// receivers' buffers are written by their own `test`. Ranks that start different operations get an error, as the most
// helpful MPI would give.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/include/jitc/jitc.h"

namespace jitc::testing {

class SimulatedWorld {
 public:
  static constexpr int kMismatch = 77;
  static constexpr int kLost = 78;

  explicit SimulatedWorld(int size) {
    for (int rank = 0; rank < size; ++rank) ranks_.push_back(std::make_unique<Rank>(Rank{this, rank, 0, {}}));
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
  };
  struct Operation {
    Kind kind;
    int root;
    std::size_t bytes;
    int started = 0;
    bool is_ready = false;
    std::string data;  // the OR so far, or the root's bytes
  };

  int start(Rank& self, Kind kind, int root, const void* send, void* receive, std::size_t bytes,
            jitc_pending* pending) {
    const std::lock_guard lock(mutex_);
    const std::size_t at = self.next++;
    if (at == operations_.size()) operations_.push_back({kind, root, bytes, 0, false, std::string(bytes, '\0')});
    Operation& operation = operations_[at];
    if (operation.kind != kind || operation.root != root || operation.bytes != bytes) return kMismatch;
    ++operation.started;
    if (kind == Kind::kReduce) {
      for (std::size_t i = 0; i < bytes; ++i) operation.data[i] |= static_cast<const char*>(send)[i];
      operation.is_ready = operation.started == size();
    } else if (self.rank == root) {
      std::memcpy(operation.data.data(), send, bytes);
      operation.is_ready = true;
    }
    self.receive.push_back(receive);
    pending->opaque[0] = at;
    return 0;
  }

  int test(Rank& self, jitc_pending* pending, int* done) {
    const std::lock_guard lock(mutex_);
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
  int released_ = 0;
  bool has_lost_rank_ = false;
};

// Runs `body(rank)` on one thread per rank and waits for all.
inline void on_ranks(int size, const std::function<void(int)>& body) {
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank) threads.emplace_back([&body, rank] { body(rank); });
}

}  // namespace jitc::testing
