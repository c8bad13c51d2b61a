// The gate over a real MPI, with an injected compiler: everything that does not need a daemon. One mpirun runs hundreds
// of schedules.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>
#include <jitc/mpi.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "client/gate/gate.h"
#include "tests/mpi/check.h"
#include "tests/support/gate_sources.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using testing::FakeCompiler;
using testing::FakeStore;
using testing::key_of;
using testing::request_for;
using testing::same_everywhere;
using testing::total;

struct Rank {
  ModuleTable modules;
  FakeStore store;
  FakeCompiler compiler;
  std::optional<Gate> gate;
  int rank = 0;
  int size = 1;

  explicit Rank(GateOptions options = {}, MPI_Comm comm = MPI_COMM_WORLD) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (!options.host_isa) options.host_isa = 0xf;
    gate.emplace(mpi::communicator(comm).release(), options, testing::services_of(modules, store, compiler),
                 Gate::OnProgress());
  }
  Outcome<Delivery> compile(const std::string& source, const std::string& manifest = "") {
    return gate->compile({request_for(source), manifest});
  }
};

double answer(const Delivery& delivery) {
  return reinterpret_cast<double (*)(double)>(*delivery.module->symbol("answer"))(2.0);
}

std::string source(const char* variant, int round) {
  return "int " + std::string(variant) + std::to_string(round) + ";\n";
}

void cold_and_warm() {
  Rank self;
  const auto cold = self.compile("int a;\n");
  CHECK(cold.has_value());
  CHECK_EQ(answer(*cold), 84.0);
  CHECK_EQ(total(self.compiler.compiles), 1);
  const auto warm = self.compile("int a;\n");
  CHECK(warm.has_value() && warm->origin == Origin::kMemory);
  CHECK_EQ(total(self.compiler.compiles), 1);
  CHECK_EQ(total(self.store.lookups), 1);
}

// Who holds the module before the call, in 200 rounds each.
void divergent_views(const char* variant, auto&& holds) {
  Rank self;
  std::vector<Outcome<Delivery>> kept;
  for (int round = 0; round < 200; ++round) {
    const std::string text = source(variant, round);
    if (holds(self.rank)) {
      const auto held =
          loader::Module::load(testing::make_artifact("answer", key_of(request_for(text))), nullptr, {0xf, ""});
      CHECK(held.has_value());
      self.modules.insert(common::request_digest(request_for(text)), *held);
      kept.push_back(Delivery{*held, {}});
    }
    const auto outcome = self.compile(text);
    CHECK(outcome.has_value());
    CHECK_EQ(answer(*outcome), 84.0);
    CHECK_EQ(total(self.compiler.compiles), holds(0) ? 0 : round + 1);
    kept.clear();
  }
}

void failures() {
  Rank self;
  for (int round = 0; round < 200; ++round) {
    const std::string text = source("bad", round);
    const int odd = round % self.size;
    const int what = round % 4;
    self.compiler.work = nullptr;
    if (what == 0)
      self.compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> {
        return common::fail(ErrorKind::kOutOfMemory, "1.3 GiB needed", "residual.c");
      };
    Outcome<Delivery> outcome = std::unexpected(Failure{});
    if (what == 1 && self.rank == odd) {
      outcome = self.gate->compile({common::fail(ErrorKind::kUsage, "no derivative"), ""});
    } else if (what == 2 && self.rank == odd) {
      outcome = self.compile(text + "int more;\n");
    } else if (what == 3 && self.rank == odd) {
      outcome = self.compile(text, "another order");
    } else {
      outcome = self.compile(text);
    }
    CHECK(!outcome.has_value());
    CHECK(!outcome.error().is_broken);
    CHECK(same_everywhere(common::to_json(outcome.error().error)));
    self.compiler.work = nullptr;
    CHECK(self.compile(source("good", round)).has_value());
  }
}

// Only the ranks of the communicator that was given take part.
void half_of_the_ranks() {
  MPI_Comm half = MPI_COMM_NULL;
  const int rank = testing::rank_of_world();
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  long compiles = 0;
  if (rank % 2 == 0) {
    Rank self({}, half);
    CHECK(self.compile("int a;\n").has_value());
    compiles = self.compiler.compiles;
  }
  CHECK_EQ(total(compiles), 1);
  MPI_Comm_free(&half);
}

void refused_communicators() {
  const auto kind_of = [](MPI_Comm comm) {
    try {
      mpi::communicator(comm);
    } catch (const jitc::Error& error) {
      return error.kind;
    }
    return JITC_OK;
  };
  CHECK_EQ(kind_of(MPI_COMM_NULL), JITC_USAGE);
  if (testing::size_of_world() < 2) return;
  // The last rank alone calls on a thread that MPI_Init's level does not allow: nobody waits for it in vain.
  const auto on_one_thread = [&] {
    if (testing::rank_of_world() != testing::size_of_world() - 1) return kind_of(MPI_COMM_WORLD);
    jitc_kind kind = JITC_OK;
    std::thread([&] { kind = kind_of(MPI_COMM_WORLD); }).join();
    return kind;
  };
  CHECK_EQ(on_one_thread(), JITC_USAGE);
  CHECK_EQ(kind_of(MPI_COMM_WORLD), JITC_OK);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm both = MPI_COMM_NULL;
  const int rank = testing::rank_of_world();
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 ? 0 : 1, 1, &both);
  CHECK_EQ(kind_of(both), JITC_USAGE);
  MPI_Comm_free(&both);
  MPI_Comm_free(&half);
}

// The root is stopped by SIGSTOP in the middle of the compile; the others end within the deadline. Rank 1 then lets it
// go on, and it too finds the communicator broken.
void stopped_root() {
  GateOptions options;
  options.pacing.silence = std::chrono::seconds(2);
  options.pacing.beat = std::chrono::milliseconds(200);
  options.pacing.roll_call = std::chrono::milliseconds(200);
  pid_t root = getpid();
  MPI_Bcast(&root, sizeof root, MPI_BYTE, 0, MPI_COMM_WORLD);
  Rank self(options);
  self.compiler.work = [](const common::Request&, const Report&) -> common::Result<Obtained> {
    raise(SIGSTOP);
    return common::fail(ErrorKind::kCancelled, "too late");
  };
  const auto outcome = self.compile("int a;\n");
  CHECK(!outcome.has_value());
  if (self.rank != 0) {
    CHECK_EQ(static_cast<int>(outcome.error().error.kind), static_cast<int>(ErrorKind::kTimedOut));
    CHECK(outcome.error().is_broken);
    CHECK(outcome.error().error.message.find("no answer from rank 0") != std::string::npos);
    const auto later = self.compile("int a;\n");
    CHECK(!later.has_value() && later.error().error.kind == ErrorKind::kBroken);
  }
  self.gate.reset();
  // The others have to be through before the root goes on and can answer them.
  if (self.rank > 1) MPI_Send(nullptr, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
  if (self.rank == 1) {
    for (int other = 2; other < self.size; ++other)
      MPI_Recv(nullptr, 0, MPI_BYTE, other, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    kill(root, SIGCONT);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// A rank that does not come: a typed error on the others, and the program's own communication is undisturbed.
void absent_rank() {
  GateOptions options;
  options.pacing.arrival = std::chrono::seconds(1);
  options.pacing.roll_call = std::chrono::milliseconds(100);
  Rank self(options);
  const int absent = self.size - 1;
  if (self.rank != absent) {
    const auto outcome = self.compile("int a;\n");
    CHECK(!outcome.has_value() && outcome.error().error.kind == ErrorKind::kTimedOut);
  }
  CHECK_EQ(total(1), self.size);
  self.gate.reset();
}

// Median over many calls, in microseconds.
double median_of(const std::function<void()>& body) {
  std::vector<double> times(2000);
  for (double& time : times) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    body();
    time = (MPI_Wtime() - start) * 1e6;
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

// What a warm call costs beside the reduction that it is made of.
void measure(std::size_t source_bytes) {
  Rank self;
  const common::Request request = request_for(std::string(source_bytes, ' ') + "int a;\n");
  const auto held = self.gate->compile({request, "rho eta"});
  CHECK(held.has_value());
  CertificateWords words{};
  CertificateWords all{};
  const int count = static_cast<int>(words.size());
  const double bare =
      median_of([&] { MPI_Allreduce(words.data(), all.data(), count, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD); });
  const double digest = median_of([&] { (void)common::request_digest(request); });
  const double call = median_of([&] { CHECK(self.gate->compile({request, "rho eta"}).has_value()); });
  if (self.rank == 0)
    std::printf(
        "%d ranks, source of %zu bytes: allreduce %.1f us, request digest %.1f us, warm call %.1f us (%.1f "
        "allreduces)\n",
        self.size, source_bytes, bare, digest, call, call / bare);
}

}  // namespace

void run(const std::string& variant) {
  const int last = testing::size_of_world() - 1;
  if (variant == "all") {
    cold_and_warm();
    divergent_views("root", [](int rank) { return rank == 0; });
    divergent_views("last", [last](int rank) { return rank == last; });
    divergent_views("but_root", [](int rank) { return rank != 0; });
    divergent_views("odd", [](int rank) { return rank % 2 == 1; });
    failures();
    half_of_the_ranks();
    refused_communicators();
    absent_rank();
  } else if (variant == "stopped_root") {
    stopped_root();
  } else if (variant == "measure") {
    for (int repeat = 0; repeat < 3; ++repeat) {
      measure(20);
      measure(14'000);
    }
  } else {
    testing::fail_check(__FILE__, __LINE__, "unknown variant " + variant);
  }
}

}  // namespace jitc::gate

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  jitc::gate::run(argc > 1 ? argv[1] : "all");
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
