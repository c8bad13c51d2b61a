// Records what the root is asked for, for `jitc warm`: the setting `record`.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "client/gate/sources.h"
#include "common/plan.h"

namespace jitc::gate {

class PlanOfRun : public Recorder {
 public:
  // `on_warning` hears once why something is not in the plan. On a helper thread.
  PlanOfRun(std::string path, std::function<void(std::string_view)> on_warning)
      : plan_(std::move(path)), on_warning_(std::move(on_warning)) {}
  void record(const common::Request& request, const MakeCode& make_code) override;

 private:
  void warn(std::string_view text);

  common::PlanRecorder plan_;
  std::function<void(std::string_view)> on_warning_;
  std::atomic<bool> has_warned_ = false;
};

}  // namespace jitc::gate
