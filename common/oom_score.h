// Whom the kernel ends when memory runs out: oom_score_adj.
#pragma once

namespace jitc::common {

// The compiles' is the most there is: a smaller one is weighed against what others hold, and in a small group a rank
// would outweigh it. The daemon's lies below, so that they go first, by more than it takes itself; and
// above any solver's that has up to so much of the memory.
inline constexpr int kCompileOomScore = 1000;
inline constexpr int kServiceOomScore = 950;

// Of this process and those that it starts from now on. Never lowers what somebody has raised further; where it is
// refused, this is an ordinary process.
void raise_oom_score(int score);

}  // namespace jitc::common
