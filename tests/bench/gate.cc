// jitc-bench-gate WHAT SOURCE [NUMBER]: the gate as a solver meets it, under mpirun. `./run bench gate` runs it.
//
//   warm     NUMBER batches of calls for a module that all ranks hold, beside collectives alone
//   marked   NUMBER such calls between two marks in a trace of system calls: kBegin, kEnd
//   once     one call that compiles: the compilers that were started, the CPU time that each rank took meanwhile
#include <mpi.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <jitc/mpi.hpp>
#include <string>
#include <vector>

#include "client/gate/certificate.h"

namespace {

using Words = jitc::gate::CertificateWords;

// Files that are asked for and do not exist: they show in a trace where the measured calls begin and end.
constexpr const char* kBegin = "/jitc-bench-begin";
constexpr const char* kEnd = "/jitc-bench-end";
// Of calls in a row: one call is shorter than what the clock and the other ranks' arrival make uncertain.
constexpr int kBatch = 100;

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

int size_of_world() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

jitc::Request read_request(const char* path) {
  std::ifstream file(path);
  jitc::Request request;
  request.source.assign(std::istreambuf_iterator<char>(file), {});
  if (request.source.empty()) {
    std::fprintf(stderr, "jitc-bench-gate: cannot read %s\n", path);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return request;
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double least(const std::vector<double>& values) { return *std::min_element(values.begin(), values.end()); }

double microseconds(const std::function<void()>& call) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < kBatch; ++i) call();
  return 1e6 * (MPI_Wtime() - start) / kBatch;
}

// The certificate and nothing else.
void bare_certificate(MPI_Comm comm) {
  Words mine{};
  Words all{};
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(mine.data(), all.data(), static_cast<int>(mine.size()), MPI_UINT64_T, MPI_BOR, comm, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

// One message of that size from rank 0 to rank 1 and one back.
void there_and_back(MPI_Comm comm) {
  Words words{};
  const int count = static_cast<int>(words.size());
  const int rank = rank_of_world();
  if (rank == 0) MPI_Send(words.data(), count, MPI_UINT64_T, 1, 0, comm);
  if (rank < 2) MPI_Recv(words.data(), count, MPI_UINT64_T, 1 - rank, 0, comm, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(words.data(), count, MPI_UINT64_T, 0, 0, comm);
}

// What a gate of the other kind says on a hit: everybody's digest to everybody, who needs it, a barrier.
void gathered_digests(MPI_Comm comm, std::vector<char>& all) {
  std::array<char, 64> digest{};
  MPI_Allgather(digest.data(), digest.size(), MPI_CHAR, all.data(), digest.size(), MPI_CHAR, comm);
  int needs = 0;
  int someone_needs = 0;
  MPI_Allreduce(&needs, &someone_needs, 1, MPI_INT, MPI_LOR, comm);
  MPI_Barrier(comm);
}

void print_row(const char* name, const std::vector<double>& times, const std::vector<double>& peer) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < times.size(); ++i) ratios.push_back(times[i] / peer[i]);
  std::printf("    %-46s median %8.2f us  least %8.2f us   ratio: median %6.2f, of the least %6.2f\n", name,
              median(times), least(times), median(ratios), least(times) / least(peer));
}

void warm(const jitc::Request& request, int rounds) {
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
  jitc::Context alone;
  const jitc::Module module = context.compile(request);
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::vector<char> digests(64 * static_cast<std::size_t>(size_of_world()));
  std::vector<double> bare, ours, gathered, local, messages;
  for (int round = -10; round < rounds; ++round) {  // the first ones warm up
    const double certificate = microseconds([&] { bare_certificate(comm); });
    const double call = microseconds([&] { (void)context.compile(request); });
    const double others = microseconds([&] { gathered_digests(comm, digests); });
    const double two_messages = microseconds([&] { there_and_back(comm); });
    const double without_ranks = microseconds([&] { (void)alone.compile(request); });
    if (round < 0) continue;
    bare.push_back(certificate);
    ours.push_back(call);
    gathered.push_back(others);
    local.push_back(without_ranks);
    messages.push_back(two_messages);
  }
  MPI_Comm_free(&comm);
  if (rank_of_world() != 0) return;
  const jitc_stats stats = context.stats();
  std::printf("warm call, %d ranks, %zu bytes of source, beside MPI_Iallreduce(BOR) of %zu words (target ratio 4)\n",
              size_of_world(), request.source.size(), Words().size());
  print_row("MPI_Iallreduce and MPI_Wait", bare, bare);
  print_row("jitc_compile", ours, bare);
  print_row("its part on one rank, without communication", local, bare);
  print_row("digests gathered, allreduce, barrier", gathered, bare);
  print_row("a message of that size there and back", messages, bare);
  std::printf("    of %llu calls %llu were served from memory\n", static_cast<unsigned long long>(stats.calls),
              static_cast<unsigned long long>(stats.memory_hits));
}

void marked(const jitc::Request& request, int calls) {
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
  const jitc::Module module = context.compile(request);
  (void)access(kBegin, F_OK);
  for (int i = 0; i < calls; ++i) (void)context.compile(request);
  (void)access(kEnd, F_OK);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void compile_once(const jitc::Request& request) {
  jitc::Context context(jitc::mpi::communicator(MPI_COMM_WORLD));
  MPI_Barrier(MPI_COMM_WORLD);
  const double cpu = cpu_seconds();
  const double start = MPI_Wtime();
  const jitc::Module module = context.compile(request);
  const double wall = MPI_Wtime() - start;
  const double share = (cpu_seconds() - cpu) / wall;
  std::vector<double> shares(static_cast<std::size_t>(size_of_world()));
  MPI_Gather(&share, 1, MPI_DOUBLE, shares.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  if (rank_of_world() != 0) return;
  std::printf(
      "    %2d ranks: %.3f s, %llu compilers started; CPU time of that: root %.2f %%, each other at most %.2f %%\n",
      size_of_world(), wall, static_cast<unsigned long long>(context.stats().compilers_started), 100 * shares[0],
      100 * *std::max_element(shares.begin() + 1, shares.end()));
}

void run(int argc, char** argv) {
  const std::string what = argc > 2 ? argv[1] : "";
  const int number = argc > 3 ? std::atoi(argv[3]) : 100;
  if (size_of_world() < 2) {
    std::fprintf(stderr, "jitc-bench-gate: start it with two ranks or more\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  } else if (what == "warm") {
    warm(read_request(argv[2]), number);
  } else if (what == "marked") {
    marked(read_request(argv[2]), number);
  } else if (what == "once") {
    compile_once(read_request(argv[2]));
  } else {
    std::fprintf(stderr, "usage: jitc-bench-gate warm|marked|once SOURCE [NUMBER]\n");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  try {
    run(argc, argv);
  } catch (const jitc::Error& error) {
    std::fprintf(stderr, "jitc-bench-gate: rank %d: %s\n", rank_of_world(), error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
