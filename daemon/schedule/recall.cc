#include "daemon/schedule/state.h"

namespace jitc::schedule {

void Scheduler::recall(const Experience& experience) {
  state_->model.learn(experience.features, experience.peak_bytes);
}

}  // namespace jitc::schedule
