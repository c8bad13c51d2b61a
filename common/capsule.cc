#include "common/capsule.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/files.h"
#include "common/json.h"
#include "common/request_json.h"

namespace jitc::common {
namespace {

constexpr const char* kFormat = "jitc capsule";

// Which members each object has, for the writer and the reader alike.
template <class C, class Visit>
void visit_capsule(C& capsule, Visit visit) {
  visit("created", capsule.created);
  visit("jitc", capsule.jitc);
  visit("host", capsule.host);
  visit("key", capsule.key);
  visit("request_digest", capsule.request_digest);
  visit("command", capsule.command);
  visit("environment", capsule.environment);
}
template <class C, class Visit>
void visit_limits(C& capsule, Visit visit) {
  visit("memory_bytes", capsule.memory_bytes);
  visit("cpu_seconds", capsule.cpu_seconds);
  visit("compilers", capsule.compilers);
  visit("budget_bytes", capsule.budget_bytes);
}
template <class C, class Visit>
void visit_use(C& capsule, Visit visit) {
  visit("predicted_bytes", capsule.predicted_bytes);
  visit("peak_bytes", capsule.peak_bytes);
  visit("seconds", capsule.seconds);
  visit("attempts", capsule.attempts);
  visit("exit_status", capsule.exit_status);
  visit("signal", capsule.signal);
}
template <class C, class Visit>
void visit_compiler(C& compiler, Visit visit) {
  visit("name", compiler.name);
  visit("path", compiler.path);
  visit("identity", compiler.identity);
}
template <class T, class Visit>
void visit_target(T& target, Visit visit) {
  visit("triple", target.triple);
  visit("isa", target.isa);
}
std::unexpected<Error> broken(std::string message, const std::string& path) {
  return fail(ErrorKind::kUsage, std::move(message), path, "name a file that a failed compile left, see 'jitc replay'");
}

}  // namespace

std::string to_json(const Capsule& capsule) {
  using Json = nlohmann::ordered_json;
  Json object = {{"format", kFormat}, {"version", kCapsuleVersion}};
  visit_capsule(capsule, writer(object));
  visit_compiler(capsule.compiler, writer(object["compiler"] = Json::object()));
  visit_target(capsule.target, writer(object["target"] = Json::object()));
  visit_limits(capsule, writer(object["limits"] = Json::object()));
  visit_use(capsule, writer(object["use"] = Json::object()));
  object["error"] = Json::parse(to_json(capsule.error));
  object["request"] = request_to_json(capsule.request);
  // A header need not be UTF-8: what is replaced shows by the request's digest.
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Capsule> capsule_from_json(std::string_view text, const std::string& path) {
  const auto object = parse_json(text);
  if (!object.is_object() || object.value("format", nlohmann::json()) != kFormat)
    return broken("not a capsule (it is cut short, or another file)", path);
  std::string wrong;
  std::uint32_t version = 0;
  Members(object, wrong)("version", version);
  if (version > kCapsuleVersion)
    return fail(ErrorKind::kVersionSkew,
                "a capsule of version " + std::to_string(version) + "; this jitc reads up to version " +
                    std::to_string(kCapsuleVersion),
                path, "use the jitc that wrote it, or a later one");
  Capsule capsule;
  visit_capsule(capsule, Members(object, wrong));
  const nlohmann::json empty = nlohmann::json::object();
  const auto part = [&](const char* name) -> const nlohmann::json& {
    const auto it = object.find(name);
    if (it != object.end() && it->is_object()) return *it;
    if (wrong.empty() && (it != object.end() || std::string_view(name) == "request")) wrong = name;
    return empty;
  };
  visit_compiler(capsule.compiler, Members(part("compiler"), wrong));
  visit_target(capsule.target, Members(part("target"), wrong));
  visit_limits(capsule, Members(part("limits"), wrong));
  visit_use(capsule, Members(part("use"), wrong));
  capsule.request = request_from_json(part("request"), wrong);
  if (part("error").empty() && wrong.empty()) wrong = "error";
  if (version == 0 || !wrong.empty())
    return broken("its member '" + (wrong.empty() ? "version" : wrong) + "' is missing or of a wrong type", path);
  capsule.error = error_from_json(object["error"].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  return capsule;
}

Result<Capsule> read_capsule(const std::string& path) {
  // A FIFO or a device must not hold the reader for ever.
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0) return fail_errno(ErrorKind::kUsage, errno, "cannot be opened", path);
  if (!S_ISREG(status.st_mode)) return broken("not a regular file", path);
  if (static_cast<std::uint64_t>(status.st_size) > kLargestCapsule)
    return broken(
        "has " + std::to_string(status.st_size) + " bytes, a capsule at most " + std::to_string(kLargestCapsule), path);
  auto text = read_all(file.get(), path, kLargestCapsule);
  if (!text) {
    text.error().kind = ErrorKind::kUsage;
    return std::unexpected(std::move(text.error()));
  }
  return capsule_from_json(*text, path);
}

}  // namespace jitc::common
