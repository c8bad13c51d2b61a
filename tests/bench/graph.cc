// Symbolic work beside SymPy: build, differentiate, share and print; the run time of what was printed; C text shared.
#include <dlfcn.h>

#include <fstream>
#include <map>
#include <random>

#include "client/graph/c_text/share.h"
#include "client/graph/derivative.h"
#include "client/graph/emit.h"
#include "tests/bench/measure.h"
#include "tests/bench/rheology.h"

namespace jitc::bench {
namespace {

constexpr int kRounds = 200;

struct Sample {
  RheologySize size;
  std::string name;
  std::string target;
};

struct PeerTimes {
  double shared = 0;     // diff, cse, print
  std::string unshared;  // diff, print; "-" where it was not run
};

std::map<std::string, PeerTimes> read_peer_times(const std::string& path) {
  std::map<std::string, PeerTimes> times;
  std::ifstream file(path);
  for (std::string name; file >> name;) {
    PeerTimes& peer = times[name];
    file >> peer.shared >> peer.unshared;
  }
  return times;
}

// The 169 derivatives as one function `g`.
std::string jacobian_text(RheologySize size, double* differentiate_ms = nullptr) {
  Rheology rheology = make_rheology(size);
  common::Result<std::vector<graph::NodeId>> entries;
  const double spent =
      milliseconds([&] { entries = graph::differentiate(rheology.graph, rheology.outputs, rheology.directions, {}); });
  if (differentiate_ms) *differentiate_ms = spent;
  if (!entries) give_up(common::to_line(entries.error()));
  const std::vector<graph::PointwiseFunction> functions{
      {.name = "g", .signature = graph::Signature::kJacobian, .outputs = std::move(*entries), .group = {}}};
  graph::EmitOptions options;
  options.sharing = graph::Sharing::kShared;
  auto text = graph::emit(rheology.graph, functions, options);
  if (!text) give_up(common::to_line(text.error()));
  return std::move(*text);
}

// ---- run time of the functions ------------------------------------------------------------------------------------

using Jacobian = void(int, int, int, const int*, const int*, const double*, const double*, const double*, const int*,
                      const int*, const double*, const double*, const double*, double, double, const double*, int,
                      const double*, double*);

class Kernel {
 public:
  Kernel(const Places& places, const std::string& name, const std::string& text) {
    const std::string source = places.scratch + "/" + name + ".c";
    const std::string object = places.scratch + "/" + name + ".so";
    std::ofstream(source) << text;
    run({"gcc", "-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC",
         "-o", object, source, "-lm"});
    handle_ = ::dlopen(object.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!handle_) give_up(::dlerror());
    function_ = reinterpret_cast<Jacobian*>(::dlsym(handle_, "g"));
    if (!function_) give_up(object + " has no function g");
  }
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;
  ~Kernel() { ::dlclose(handle_); }

  // Nanoseconds of one call, over points that are not in a row's cache of constants.
  double nanoseconds() {
    constexpr int kCalls = 20'000;
    return 1e6 / kCalls * milliseconds([this] {
             for (int call = 0; call < kCalls; ++call) at(call % kPoints);
           });
  }

 private:
  static constexpr int kPoints = 64;

  static std::vector<double> uniform(std::size_t count, double low, double high) {
    static std::mt19937_64 random{1};
    std::uniform_real_distribution<double> value(low, high);
    std::vector<double> values(count);
    for (double& each : values) each = value(random);
    return values;
  }

  void at(int point) {
    function_(3, 2, 1, nullptr, nullptr, &u_[4 * point], nullptr, &u_x_[9 * point], nullptr, nullptr, &a_[16 * point],
              nullptr, nullptr, 0.0, 0.0, nullptr, 49, constants_.data(), out_.data());
  }

  void* handle_ = nullptr;
  Jacobian* function_ = nullptr;
  std::vector<double> u_ = uniform(4 * kPoints, 0.1, 1.1), u_x_ = uniform(9 * kPoints, -0.5, 0.5),
                      a_ = uniform(16 * kPoints, 0.3, 1.3), constants_ = uniform(49, 0.5, 0.8),
                      out_ = uniform(169, 0, 1);
};

void measure_rheology(const Places& places, const Sample& sample, const PeerTimes& peer) {
  std::vector<double> total, differentiate;
  std::string text;
  for (int round = -10; round < kRounds; ++round) {
    double derivative = 0;
    const double spent = milliseconds([&] { text = jacobian_text(sample.size, &derivative); });
    if (round < 0) continue;
    total.push_back(spent);
    differentiate.push_back(derivative);
  }
  const double ours = median(total);
  print_row(sample.name + ", expressions to shared C", ours, peer.shared, "SymPy diff + cse + print", sample.target);
  std::printf("    SymPy takes %.0f times as long; derivatives %.3f ms; SymPy without cse %s ms; %zu bytes of C\n",
              peer.shared / ours, median(differentiate), peer.unshared.c_str(), text.size());

  Kernel our_kernel(places, "ours_" + sample.name, text);
  Kernel peer_kernel(places, "sympy_" + sample.name, read_text(places.scratch + "/sympy/" + sample.name + ".c"));
  std::vector<double> our_ns, peer_ns;
  for (int round = 0; round < 40; ++round) {
    our_ns.push_back(our_kernel.nanoseconds());
    peer_ns.push_back(peer_kernel.nanoseconds());
  }
  std::printf("    run time of the 169 entries, gcc -O3: %.0f ns, SymPy's cse %.0f ns, ratio %.2f\n", median(our_ns),
              median(peer_ns), median(our_ns) / median(peer_ns));
}

void measure_interning() {
  std::printf("new nodes, a chain of products and sums of its own values:\n");
  for (const std::size_t count :
       {std::size_t{1'000}, std::size_t{10'000}, std::size_t{100'000}, std::size_t{1'000'000}}) {
    std::vector<double> spent;
    std::size_t bytes = 0;
    for (int round = 0; round < 9; ++round) {
      spent.push_back(milliseconds([&] {
        graph::Graph graph;
        graph::NodeId last = graph.leaf(graph::kU, 0);
        const graph::NodeId first = last;
        while (graph.size() < count) {
          last = graph.binary(graph.size() % 2 ? graph::Op::kMul : graph::Op::kAdd, last, first);
        }
        bytes = graph.bytes();
      }));
    }
    std::printf("    %8zu nodes: %.1f ns and %.1f bytes each\n", count,
                1e6 * median(spent) / static_cast<double>(count),
                static_cast<double>(bytes) / static_cast<double>(count));
  }
}

void measure_text(const Places& places) {
  const std::string text = read_text(places.scratch + "/level_sets_16.c");
  std::vector<double> spent;
  graph::SharedText shared;
  for (int round = -1; round < 9; ++round) {
    const double each = milliseconds([&] { shared = graph::share(text); });
    if (round >= 0) spent.push_back(each);
  }
  std::printf("C text shared, level_sets_16: %zu to %zu bytes in %.1f ms, %.0f MB/s (target 12 ms, 120 MB/s)\n",
              text.size(), shared.text.size(), median(spent), static_cast<double>(text.size()) / 1e3 / median(spent));
  const std::string before = places.scratch + "/tree.c", after = places.scratch + "/shared.c";
  std::ofstream(before) << text;
  std::ofstream(after) << shared.text;
  const auto compile = [&](const std::string& source) {
    return measure_process({"gcc", "-O3", "-g0", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno",
                            "-fno-trapping-math", "-shared", "-fPIC", "-o", places.scratch + "/text.so", source,
                            "-lm"});
  };
  const ProcessCost tree = compile(before), small = compile(after);
  std::printf("    gcc -O3 before: %.2f s, %.0f MiB; after: %.3f s, %.0f MiB; ratio of time %.4f\n", tree.seconds,
              tree.peak_mib, small.seconds, small.peak_mib, small.seconds / tree.seconds);
}

}  // namespace

void graph(const Places& places) {
  const auto peers = read_peer_times(places.scratch + "/sympy/times.txt");
  for (const Sample& sample : {Sample{RheologySize::kSmall, "small", "0.06 ms, 1000 times"},
                               Sample{RheologySize::kMedium, "medium", "0.08 ms, 1000 times"},
                               Sample{RheologySize::kLarge, "large", "0.25 ms, 1000 times"}}) {
    const auto peer = peers.find(sample.name);
    if (peer == peers.end()) give_up("SymPy's times of " + sample.name + " are missing");
    measure_rheology(places, sample, peer->second);
  }
  measure_interning();
  measure_text(places);
}

}  // namespace jitc::bench
