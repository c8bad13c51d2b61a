// 64 identical requests at once against one compile of the same source.
#include <thread>

#include "tests/bench/measure.h"

namespace jitc::bench {

void herd(const Places& places) {
  constexpr int kClients = 64;
  const std::string text = read_text(places.scratch + "/level_sets_16.c");
  const auto daemon = open_daemon(places);
  const double one = milliseconds([&] { compile(*daemon, request_of(fresh(text))); });
  const common::Request request = request_of(fresh(text));
  const double all = milliseconds([&] {
    std::vector<std::jthread> clients;
    for (int i = 0; i < kClients; ++i) clients.emplace_back([&] { compile(*daemon, request); });
  });
  print_row("64 identical requests, cold", all, one, "one compile", "1.15");
}

}  // namespace jitc::bench
