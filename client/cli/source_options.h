// What is asked for with a C source: the options and settings that `jitc submit` has in common with others.
#pragma once

#include <string>
#include <vector>

#include "client/cli/context.h"
#include "common/error.h"
#include "common/request.h"

namespace jitc::cli {

struct SourceOptions {
  std::vector<std::string> flags;
  bool exact_flags = false;
  SettingFlags settings;
};
// Must outlive the parse, as `options` must.
void add_source_options(CLI::App& app, SourceOptions& options);

// What all sources have in common.
common::Result<common::Request> common_request(const SourceOptions& options, const Context& context);
// One of them. kUsage as check_request.
common::Result<common::Request> request_for(common::Request request, std::string name, std::string text);

}  // namespace jitc::cli
