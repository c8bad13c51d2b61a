// Commands between the contract's messages and the daemon's own types.
#include <algorithm>
#include <atomic>
#include <utility>

#include "daemon/service/marshal.h"

namespace jitc::service {
namespace {

using common::ErrorKind;

constexpr const char* kCommandCompiler = "gcc";  // whose memory the model knows

// Of no artifact, and of nobody else.
common::Digest key_of_turn() {
  static std::atomic<std::uint64_t> turns{0};
  return common::Hasher("jitc turn 1").number("turn", ++turns).finish();
}

}  // namespace

common::Result<common::Command> command_of(const v1::Command& wire, std::uint64_t most_bytes) {
  if (wire.ByteSizeLong() > most_bytes)
    return common::fail(ErrorKind::kRefused, "has more bytes than this daemon takes", "command",
                        "raise JITC_MAX_SOURCE at the daemon");
  common::Command command;
  command.compiler = wire.compiler();
  command.argv.assign(wire.argv().begin(), wire.argv().end());
  command.environment.assign(wire.environment().begin(), wire.environment().end());
  command.directory = wire.directory();
  command.by_caller = wire.by_caller();
  command.for_this_cpu = wire.for_this_cpu();
  command.with_messages = wire.with_messages();
  for (const auto& input : wire.inputs()) command.inputs.push_back({input.path(), input.seen()});
  command.scan.bytes = wire.text_bytes();
  command.scan.calls = wire.calls();
  command.scan.largest_function = wire.largest_function();
  command.scan.nesting = wire.nesting();
  const auto wrong = [](const char* what) {
    return common::fail(ErrorKind::kUsage, what, "command", "use the command and the daemon of one installation");
  };
  if (!command.compiler.starts_with('/')) return wrong("its compiler has no absolute path");
  if (command.by_caller) return command;
  if (command.argv.empty() || !command.directory.starts_with('/')) return wrong("it has no words, or no directory");
  if (wire.digest().size() != command.digest.bytes.size()) return wrong("its digest is not 32 bytes");
  std::ranges::copy(wire.digest(), command.digest.bytes.begin());
  return command;
}

Prepared prepare(common::Command command, const v1::CompileRequest& wire,
                 std::shared_ptr<const common::Identity> identity, const std::string& compiler) {
  Prepared prepared;
  prepared.want_bytes = wire.want_bytes();
  prepared.request.name = wire.name();
  prepared.request.job = wire.job();
  prepared.request.compiler = kCommandCompiler;
  if (!command.argv.empty()) prepared.request.flags.assign(command.argv.begin() + 1, command.argv.end());
  prepared.request.exact_flags = true;
  prepared.request.no_cache = command.by_caller;  // there is nothing to look up
  prepared.resolved.compiler = {kCommandCompiler, command.compiler, compiler};
  prepared.resolved.key =
      command.by_caller ? key_of_turn() : common::command_key(command, compiler, identity->native_isa);
  prepared.resolved.request = command.digest;
  prepared.resolved.target = {identity->triple, command.for_this_cpu ? identity->native_isa : std::string()};
  prepared.resolved.isa_needed = common::kNotAModule;
  prepared.scan = command.scan;
  prepared.identity = std::move(identity);
  prepared.command = std::move(command);
  return prepared;
}

std::string source_payload(const Prepared& prepared) {
  if (!prepared.command) return std::string(prepared.request.text());
  v1::Command wire;
  wire.set_compiler(prepared.command->compiler);
  for (const auto& word : prepared.command->argv) wire.add_argv(word);
  for (const auto& entry : prepared.command->environment) wire.add_environment(entry);
  wire.set_directory(prepared.command->directory);
  return wire.SerializeAsString();
}

}  // namespace jitc::service
