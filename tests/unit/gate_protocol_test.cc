// The protocol's machine alone, where no few ranks can bring it: very many ranks, and words that no rank has sent.
#include "client/gate/protocol.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace jitc::gate {
namespace {

View view_of_two() {
  View view;
  view.modules = {{"a", false}, {"b", false}};
  return view;
}

Words certificate_of(const View& view) {
  Certificate certificate;
  certificate.needs = need_bit(0) | need_bit(1);
  certificate.call = view.call;
  const CertificateWords words = certificate.words();
  return {words.begin(), words.end()};
}

// The root's look-up has found neither of the two; gives what the root does then.
Action after_the_look_up(Protocol& root) {
  static_cast<void>(root.begin());
  Action next = root.reduced(certificate_of(view_of_two()));
  EXPECT_EQ(std::get<action::Begin>(next).work, Work::kLookUp);
  EXPECT_TRUE(std::get<action::Await>(root.done()).is_look_up);
  EXPECT_TRUE(std::holds_alternative<action::Post>(root.looked_up(std::vector<bool>{false, false}, 0)));
  next = root.done();
  EXPECT_TRUE(
      std::holds_alternative<action::Settle>(root.broadcast(std::move(std::get<action::Broadcast>(next).bytes))));
  return root.done();
}

// The second half of the ranks is on as many nodes. Work that grows with ranks times nodes does not end in time here.
TEST(GateProtocolAlone, LeadersOfManyRanksAreLearntInOneLookAndThenKnown) {
  constexpr int kRanks = 100'000;
  constexpr int kCalls = 2000;
  Words nodes(kRanks, 1);
  for (std::size_t rank = kRanks / 2; rank < kRanks; ++rank) nodes[rank] = rank;
  std::vector<int> leaders;
  for (int call = 0; call < kCalls; ++call) {
    if (call % 100 == 0) leaders.clear();
    const bool is_known = !leaders.empty();
    Protocol root({.rank = 0, .size = kRanks, .node = 1}, view_of_two(), std::move(leaders));
    Action next = after_the_look_up(root);
    if (!is_known) {
      Words own = std::get<action::Reduce>(next).words;
      ASSERT_EQ(own.size(), nodes.size());
      EXPECT_EQ(own[0], 1U);
      EXPECT_EQ(std::ranges::count(own, 0U), kRanks - 1);
      next = root.reduced(nodes);
    }
    EXPECT_EQ(std::get<action::Begin>(next).modules, std::vector<std::size_t>{0});
    leaders = root.take_leaders();
    ASSERT_EQ(leaders.size(), kRanks / 2 + 1U);
    EXPECT_EQ(leaders[0], 0);
    EXPECT_EQ(leaders[1], kRanks / 2);
    EXPECT_EQ(leaders.back(), kRanks - 1);
  }
}

TEST(GateProtocolAlone, ErrorThatNoRankOwnsUpToIsAFailureOfItsOwn) {
  Protocol root({.rank = 0, .size = 2}, view_of_two());
  static_cast<void>(root.begin());
  Words words = certificate_of(view_of_two());
  Certificate failed;
  failed.error = common::ErrorKind::kUsage;
  const CertificateWords others = failed.words();
  for (std::size_t i = 0; i < words.size(); ++i) words[i] |= others[i];
  EXPECT_TRUE(std::holds_alternative<action::Reduce>(root.reduced(words)));
  const Action last = root.reduced(Words{0});
  const auto* finish = std::get_if<action::Finish>(&last);
  ASSERT_TRUE(finish && finish->failure);
  EXPECT_EQ(finish->failure->error.kind, common::ErrorKind::kInternal);
}

TEST(GateProtocolAlone, RanksInEveryWordAreNamed) {
  Protocol root({.rank = 0, .size = 200}, view_of_two());
  static_cast<void>(root.begin());
  Certificate failed;
  failed.error = common::ErrorKind::kUsage;
  const CertificateWords words = failed.words();
  static_cast<void>(root.reduced(words));
  constexpr std::uint64_t kLast = std::uint64_t{1} << 63;
  Action next = root.reduced(Words{kLast, 1, kLast | 2, 0});
  for (const int rank : {63, 64, 129, 191}) {
    ASSERT_TRUE(std::holds_alternative<action::Broadcast>(next));
    EXPECT_EQ(std::get<action::Broadcast>(next).from, rank);
    next = root.broadcast(common::to_json({common::ErrorKind::kUsage, "no request", {}, {}}));
  }
  ASSERT_TRUE(std::holds_alternative<action::Finish>(next));
  EXPECT_EQ(std::get<action::Finish>(next).failure->ranks, (std::vector{63, 64, 129, 191}));
}

}  // namespace
}  // namespace jitc::gate
