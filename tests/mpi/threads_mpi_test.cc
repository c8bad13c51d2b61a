// The gate on threads, at each level that MPI_Init_thread may be asked for.
//
//   threads_mpi_test single | funneled | serialized | multiple
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/mpi/gate_rank.h"

namespace jitc::gate {
namespace {

using testing::answer;
using testing::check_delivered;
using testing::kind_of;
using testing::number_of;
using testing::Rank;
using testing::request_for;
using testing::source;
using testing::total;

constexpr int kThreads = 3;
constexpr int kCalls = 20;

// Below SERIALIZED jitc is used on the thread that initialised MPI.
void on_the_main_thread() {
  Rank self;
  for (int call = 0; call < kCalls; ++call) {
    const std::string text = source("main", call);
    check_delivered(self.compile(text), text, Origin::kCompiled);
  }
  if (testing::size_of_world() < 2) return;
  // Some ranks alone come on another thread: nobody waits for them in vain, all have the error.
  for (const int odd : {0, testing::size_of_world() - 1}) {
    jitc_kind kind = JITC_OK;
    if (testing::rank_of_world() == odd) {
      std::thread([&kind] { kind = kind_of(MPI_COMM_WORLD); }).join();
    } else {
      kind = kind_of(MPI_COMM_WORLD);
    }
    CHECK_EQ(kind, JITC_USAGE);
  }
  CHECK_EQ(kind_of(MPI_COMM_WORLD), JITC_OK);
  // No function that begins something may be used on another thread, to tell other ranks of it neither.
  const jitc_communicator table = mpi::communicator(MPI_COMM_WORLD).release();
  std::thread([&table] {
    std::uint64_t word = 0;
    std::uint64_t sum = 0;
    jitc_pending pending;
    int is_there = 0;
    constexpr int kRefused = mpi::detail::kWrongThreadCode;
    CHECK_EQ(table.iallreduce_or(table.state, &word, &sum, 1, &pending), kRefused);
    CHECK_EQ(table.ibcast(table.state, &word, sizeof word, 0, &pending), kRefused);
    CHECK_EQ(table.isend(table.state, &word, sizeof word, 0, &pending), kRefused);
    CHECK_EQ(table.irecv(table.state, &word, sizeof word, 0, &pending), kRefused);
    CHECK_EQ(table.iprobe(table.state, &is_there), kRefused);
  }).join();
  table.release(table.state);
  // A call on another thread reaches no function of MPI: on every rank it breaks this context alone.
  std::optional<Outcome<Delivery>> outcome;
  const std::string text = source("another thread", 0);
  std::thread([&] { outcome = self.compile(text); }).join();
  CHECK(!*outcome);
  CHECK(outcome->error().error.kind == common::ErrorKind::kBroken);
  CHECK(outcome->error().error.message.find("MPI_THREAD_SERIALIZED") != std::string::npos);
}

// Threads with a context each, one of them in MPI at a time.
void in_turns() {
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int thread = 0; thread < kThreads; ++thread) ranks.push_back(std::make_unique<Rank>());
  std::atomic<int> turn = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&turn, thread, &self = *ranks[static_cast<std::size_t>(thread)]] {
        for (int call = 0; call < kCalls; ++call) {
          const int mine = call * kThreads + thread;
          for (int now = turn; now != mine; now = turn) turn.wait(now);
          const std::string text = source("turn", mine);
          check_delivered(self.compile(text), text, Origin::kCompiled);
          turn = mine + 1;
          turn.notify_all();
        }
      });
  }
  for (const auto& self : ranks) CHECK_EQ(total(self->compiler.compiles), kCalls);
}

// Threads with a context each, all of them in MPI at once. They share the process's table of modules, as libjitc's
// contexts do, and every other module: on one rank a thread finds there what on another rank nobody has yet.
void all_at_once() {
  ModuleTable modules;
  std::vector<MPI_Comm> comms(kThreads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<long> compiles = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread)
      threads.emplace_back([&compiles, &modules, thread, comm = comms[static_cast<std::size_t>(thread)]] {
        Rank self({}, comm, &modules);
        for (int call = 0; call < kCalls; ++call) {
          const std::string text = call % 2 ? source("shared", call) : source("own" + std::to_string(thread), call);
          const auto outcome = self.compile(text);
          CHECK(outcome.has_value());
          CHECK_EQ(answer(*outcome), number_of(common::request_digest(request_for(text))));
          CHECK(testing::same_everywhere(std::to_string(static_cast<int>(outcome->origin)), comm));
        }
        compiles += self.compiler.compiles;
      });
  }
  const long all = total(compiles);
  CHECK(all >= kCalls / 2 * (kThreads + 1));  // each module once, if the shared ones are
  CHECK(all <= kCalls * kThreads);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

}  // namespace

void run(int level) {
  if (level < MPI_THREAD_SERIALIZED) on_the_main_thread();
  if (level >= MPI_THREAD_SERIALIZED) in_turns();
  if (level >= MPI_THREAD_MULTIPLE) all_at_once();
}

}  // namespace jitc::gate

int main(int argc, char** argv) {
  const std::map<std::string, int> levels{{"single", MPI_THREAD_SINGLE},
                                          {"funneled", MPI_THREAD_FUNNELED},
                                          {"serialized", MPI_THREAD_SERIALIZED},
                                          {"multiple", MPI_THREAD_MULTIPLE}};
  const auto level = levels.find(argc > 1 ? argv[1] : "");
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, level == levels.end() ? MPI_THREAD_SINGLE : level->second, &provided);
  CHECK(level != levels.end());
  CHECK_EQ(provided, level->second);
  jitc::gate::run(level->second);
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
