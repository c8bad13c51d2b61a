#include "client/cli/source_options.h"

#include <utility>

#include "client/api/sharing.h"
#include "common/flags.h"

namespace jitc::cli {

void add_source_options(CLI::App& app, SourceOptions& options) {
  app.add_option("--flag", options.flags, "one more compiler flag, as --flag=-O2 (repeatable)")
      ->allow_extra_args(false)
      ->type_name("F");
  options.settings.add(app, {"cc", "cflags", "share", "isa", "runtime_dir"});
  app.add_flag("--exact-flags", options.exact_flags,
               "never compile at another optimisation level than asked, when memory runs out");
}

common::Result<common::Request> common_request(const SourceOptions& options, const Context& context) {
  const auto& settings = context.settings;
  auto flags = common::split_flags(settings.text("cflags"));
  if (!flags) return std::unexpected(std::move(flags.error()));
  common::Request request;
  request.flags = std::move(*flags);
  request.flags.insert(request.flags.end(), options.flags.begin(), options.flags.end());
  request.compiler = settings.text("cc");
  request.share = settings.text("share");
  request.cse = settings.text("cse");
  request.isa_wish = settings.text("isa");
  request.exact_flags = options.exact_flags;
  return request;
}

common::Result<common::Request> request_for(common::Request request, std::string name, std::string text) {
  request.name = std::move(name);
  request.origin = std::move(text);
  request.emitter_version = api::sharing_version(request);
  if (auto checked = common::check_request(request); !checked) return std::unexpected(std::move(checked.error()));
  return request;
}

}  // namespace jitc::cli
