// The gate over a real MPI, with an injected compiler: everything that does not need a daemon. One mpirun runs hundreds
// of schedules. What ranks see of each other's modules: views_mpi_test.cc; communicators, threads and random faults
// have their own tests, too.
//
//   gate_mpi_test all ROUNDS | stopped_root | measure
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tests/mpi/gate_rank.h"

namespace jitc::gate {
namespace {

using common::ErrorKind;
using testing::check_delivered;
using testing::Rank;
using testing::request_for;
using testing::same_everywhere;
using testing::source;
using testing::total;

void cold_and_warm() {
  Rank self;
  const auto cold = self.compile("int a;\n");
  check_delivered(cold, "int a;\n", Origin::kCompiled);
  CHECK_EQ(total(self.compiler.compiles), 1);
  const auto warm = self.compile("int a;\n");
  check_delivered(warm, "int a;\n", Origin::kMemory);
  CHECK_EQ(total(self.compiler.compiles), 1);
  CHECK_EQ(total(self.store.lookups), 1);
}

// As many modules as a large solver has live side by side; all ranks ask for them in the same order, whatever that is.
void several_modules() {
  constexpr int kModules = 12;
  Rank self;
  std::vector<Outcome<Delivery>> kept;
  for (int module = 0; module < kModules; ++module) kept.push_back(self.compile(source("module", module)));
  for (int step = 0; step < 2 * kModules; ++step) {
    const int module = step * 5 % kModules;
    const std::string text = source("module", module);
    check_delivered(kept[static_cast<std::size_t>(module)], text, Origin::kCompiled);
    check_delivered(self.compile(text), text, Origin::kMemory);
  }
  CHECK_EQ(total(self.compiler.compiles), kModules);
  // One rank gives one back: the others' are untouched, and it gets it again.
  if (self.rank == self.size - 1) kept[3] = std::unexpected(Failure{});
  const std::string third = source("module", 3);
  check_delivered(self.compile(third), third, self.size == 1 ? Origin::kCompiled : Origin::kRank);
  CHECK_EQ(total(self.compiler.compiles), kModules);
}

void failures(int rounds) {
  Rank self;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = source("bad", round);
    const int odd = round % self.size;
    const int what = round % 4;
    self.compiler.work = testing::compile_numbered;
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
    self.compiler.work = testing::compile_numbered;
    const std::string good = source("good", round);
    check_delivered(self.compile(good), good, Origin::kCompiled);
  }
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
  testing::barrier();
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

void run(const std::string& variant, int rounds) {
  if (variant == "all") {
    CHECK(rounds > 0);
    cold_and_warm();
    several_modules();
    failures(rounds);
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
  jitc::gate::run(argc > 1 ? argv[1] : "", argc > 2 ? std::atoi(argv[2]) : 0);
  if (jitc::testing::rank_of_world() == 0) std::puts("all ranks agree");
  MPI_Finalize();
  return 0;
}
