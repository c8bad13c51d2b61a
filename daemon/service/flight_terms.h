// A request and its compile in the words of the scheduler, the trace and people.
#pragma once

#include <string>

#include "common/error.h"
#include "daemon/observe/trace.h"
#include "daemon/schedule/scheduler.h"
#include "daemon/service/work.h"

namespace jitc::service {

schedule::Submission submission_of(const Prepared& prepared, const std::string& client);
observe::TraceSubject subject_of(const schedule::Submission& submission);
// With the scan's counts, or the parse's where it made some.
schedule::CompileOutcome outcome_of(const WorkerFinished& finished, const Prepared& prepared);
schedule::CompileOutcome failed_outcome(schedule::CompileOutcome::Kind kind, common::Error error);
const char* name_of(schedule::FlightView::Phase phase);

}  // namespace jitc::service
