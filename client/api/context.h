// jitc_context: one communicator's gate with the process's settings, sources and statistics.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client/api/progress_line.h"
#include "client/gate/daemon_compiler.h"
#include "client/gate/gate.h"
#include "client/gate/local_store.h"
#include "client/include/jitc/jitc.h"
#include "common/settings.h"

struct jitc_context {
 public:
  // `communicator` is complete.
  jitc_context(const jitc_communicator& communicator, const jitc_options& options);

  // What this rank wants, by what the context's settings say of every request.
  using MakeDemand = std::function<jitc::gate::Demand(const jitc::common::Result<jitc::common::Request>&)>;
  // `has_handle`: there is memory for the module's handle, without which this rank cannot take part in a success.
  jitc::gate::Outcome<jitc::gate::Delivery> compile(const MakeDemand& make_demand, bool has_handle);
  // The same for several modules.
  using MakeDemands =
      std::function<std::vector<jitc::gate::Demand>(const jitc::common::Result<jitc::common::Request>&)>;
  jitc::gate::Outcome<std::vector<jitc::gate::Delivery>> compile_all(const MakeDemands& make_demands, bool has_handles);
  bool is_broken() const { return gate_.broken().has_value(); }
  const jitc_stats& stats() const { return stats_; }

 private:
  void tell(const std::string& name, const jitc::rpc::Progress& progress);
  // A call has ended, with these modules; none: it has failed.
  void count(std::span<const jitc::gate::Delivery> deliveries, double seconds);
  void count(const jitc::gate::Delivery& delivery);

  // A wrong setting is this rank's part of the first collective decision, not a failure to open.
  jitc::common::Result<jitc::common::Settings> settings_;
  jitc::common::Result<jitc::common::Request> defaults_;
  std::string runtime_dir_;
  jitc_progress_callback progress_;
  void* progress_state_;
  jitc::api::ProgressLine line_;
  jitc::gate::Gate gate_;
  jitc_stats stats_{};
};
