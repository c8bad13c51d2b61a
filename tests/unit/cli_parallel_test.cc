// The same work for several things at once, with few threads and with exceptions.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <stdexcept>
#include <system_error>

#include "client/cli/parallel.h"

namespace jitc::cli {
namespace {

void nothing_fails(std::size_t at, const std::exception& exception) { ADD_FAILURE() << at << ": " << exception.what(); }

TEST(InParallel, RunsAtTheSameTime) {
  std::latch all_there(4);
  in_parallel(4, 64, [&](std::size_t) { all_there.arrive_and_wait(); }, nothing_fails);
}

TEST(InParallel, GoesOnWithTheThreadsThatThereAre) {
  for (const std::size_t available : {0u, 2u}) {
    std::vector<std::atomic<int>> calls(20);
    const AddThread add = [&](auto& threads, const auto& run) {
      if (threads.size() == available) throw std::system_error(EAGAIN, std::generic_category());
      add_thread(threads, run);
    };
    in_parallel(calls.size(), 8, [&](std::size_t at) { ++calls[at]; }, nothing_fails, add);
    for (const auto& called : calls) EXPECT_EQ(called, 1);
  }
}

TEST(InParallel, AnExceptionIsThatOfItsPiece) {
  std::vector<std::string> outcomes(12);
  in_parallel(
      outcomes.size(), 4,
      [&](std::size_t at) {
        if (at % 3 == 0) throw std::runtime_error("no " + std::to_string(at));
        outcomes[at] = "done";
      },
      [&](std::size_t at, const std::exception& exception) { outcomes[at] = exception.what(); });
  for (std::size_t at = 0; at < outcomes.size(); ++at)
    EXPECT_EQ(outcomes[at], at % 3 == 0 ? "no " + std::to_string(at) : "done");
}

}  // namespace
}  // namespace jitc::cli
