// jitc_context: one communicator's gate with the process's settings, sources and statistics.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "client/api/progress_line.h"
#include "client/api/request.h"
#include "client/gate/daemon_compiler.h"
#include "client/gate/gate.h"
#include "client/gate/local_store.h"
#include "client/include/jitc/jitc.h"
#include "common/settings.h"

struct jitc_context {
 public:
  // `communicator` is complete.
  jitc_context(const jitc_communicator& communicator, const jitc_options& options);

  // What this rank wants, by what the context's settings say of every request. Neither throws.
  jitc::gate::Demand demand_of(const jitc_request* request);
  jitc::gate::Demand demand_of(jitc_problem* problem, const jitc_emit_options* options, const jitc_request* request);
  jitc::gate::Outcome<std::vector<jitc::gate::Delivery>> compile(std::span<jitc::gate::Demand> demands);
  bool is_broken() const { return gate_.broken().has_value(); }
  const jitc_stats& stats() const { return stats_; }

 private:
  void tell(const std::string& name, const jitc::rpc::Progress& progress);
  // A call has ended, with these modules; none: it has failed.
  void count(std::span<const jitc::gate::Delivery> deliveries, double seconds);
  void count(const jitc::gate::Delivery& delivery);

  // A wrong setting is this rank's part of the first collective decision, not a failure to open.
  jitc::common::Result<jitc::common::Settings> settings_;
  jitc::common::Result<jitc::api::Defaults> defaults_;
  jitc::api::RecentRequests recent_;
  std::string runtime_dir_;
  jitc_progress_callback progress_;
  void* progress_state_;
  jitc::api::ProgressLine line_;
  jitc::gate::Gate gate_;
  jitc_stats stats_{};
};
