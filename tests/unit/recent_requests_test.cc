// How many requests a context remembers.
#include "client/api/recent_requests.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace jitc::api {
namespace {

constexpr std::size_t kLarge = std::size_t{300} << 10;

// Of twenty requests, each with a large text in the place that `put` chooses.
std::size_t kept_of_twenty(const std::function<void(common::Request&, std::string)>& put) {
  RecentRequests recent;
  const auto add = [&](const std::string& name) {
    std::size_t kept = 0;
    recent.get(
        [&](const common::Request&) {
          ++kept;
          return false;
        },
        [&] {
          common::Request request;
          request.name = name;
          put(request, std::string(kLarge, 'x'));
          return request;
        });
    return kept;
  };
  for (int i = 0; i < 20; ++i) add("m" + std::to_string(i));
  return add("last");
}

TEST(RecentRequests, AreBoundedByNumber) {
  EXPECT_EQ(kept_of_twenty([](common::Request&, const std::string&) {}), 16U);
}

// The last one, and what fits into a megabyte, wherever the text is.
TEST(RecentRequests, AreBoundedByAllTheirTexts) {
  EXPECT_EQ(kept_of_twenty([](auto& request, std::string text) { request.origin = std::move(text); }), 4U);
  EXPECT_EQ(kept_of_twenty([](auto& request, std::string text) { request.headers = {{"a.h", std::move(text)}}; }), 4U);
  EXPECT_EQ(kept_of_twenty([](auto& request, std::string text) { request.flags = {std::move(text)}; }), 4U);
  EXPECT_EQ(kept_of_twenty([](auto& request, std::string text) { request.abi_tag = std::move(text); }), 4U);
}

}  // namespace
}  // namespace jitc::api
