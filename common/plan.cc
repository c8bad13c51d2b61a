#include "common/plan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/json.h"
#include "common/request_json.h"
#include "common/utf8.h"

namespace jitc::common {
namespace {

constexpr const char* kFormat = "jitc plan";

std::unexpected<Error> broken(std::string message, std::string place) {
  return fail(ErrorKind::kUsage, std::move(message), std::move(place),
              "take this line out, or record the run again (JITC_RECORD)");
}

Result<Request> request_in(std::string_view line, const std::string& place) {
  const auto object = parse_json(line);
  if (!object.is_object()) return fail(ErrorKind::kCorrupt, "cut short", place);
  if (object.value("format", nlohmann::json()) != kFormat) return broken("not a line of a plan", place);
  std::string wrong, digest;
  std::uint32_t version = 0;
  Members(object, wrong)("version", version);
  if (version > kPlanVersion)
    return fail(ErrorKind::kVersionSkew,
                "a plan of version " + std::to_string(version) + "; this jitc reads up to version " +
                    std::to_string(kPlanVersion),
                place, "use the jitc that wrote it, or a later one");
  Members(object, wrong)("digest", digest);
  const auto request = object.find("request");
  if (version == 0 || !wrong.empty() || request == object.end() || !request->is_object())
    return broken("its member '" + (wrong.empty() ? version == 0 ? "version" : "request" : wrong) +
                      "' is missing or of a wrong type",
                  place);
  Request asked = request_from_json(*request, wrong);
  if (!wrong.empty()) return broken("its member 'request." + wrong + "' is of a wrong type", place);
  // A problem's code has the digest in its symbols.
  if (request_digest(asked).hex() != digest) return broken("its request is not the one that was recorded", place);
  return asked;
}

std::string place_of(const std::string& name, std::size_t line) { return name + ":" + std::to_string(line); }

}  // namespace

Result<std::string> plan_line(const Request& request) {
  bool is_text = is_utf8(request.origin) && is_utf8(request.code);
  for (const Header& header : request.headers) is_text = is_text && is_utf8(header.text);
  if (!is_text)
    return fail(ErrorKind::kUsage, "a text that is not UTF-8 cannot be in a plan", request.name,
                "write it in UTF-8, or leave this source out of the plan");
  nlohmann::ordered_json object = {
      {"format", kFormat}, {"version", kPlanVersion}, {"digest", request_digest(request).hex()}};
  nlohmann::ordered_json& asked = object["request"] = request_to_json(request);
  asked["isa_level"] = "";
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

Result<Plan> plan_from_text(std::string_view text, const std::string& name) {
  Plan plan;
  std::set<Digest> known;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.empty()) continue;
    auto request = request_in(line, place_of(name, number));
    if (!request && request.error().kind == ErrorKind::kCorrupt) {
      plan.cut_lines.push_back(number);
    } else if (!request) {
      return std::unexpected(std::move(request.error()));
    } else if (known.insert(request_digest(*request)).second) {
      plan.requests.push_back(std::move(*request));
    }
  }
  return plan;
}

// ---- adding to a file -----------------------------------------------------------------------------------------------

Result<void> PlanRecorder::open() {
  if (file_) return {};
  // A FIFO or a device must not hold the caller for ever.
  Fd file(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  struct stat status{};
  if (!file || ::fstat(file.get(), &status) != 0)
    return fail_errno(write_error_kind(errno), errno, "the plan cannot be opened", path_, "correct JITC_RECORD");
  if (!S_ISREG(status.st_mode))
    return fail(ErrorKind::kUsage, "the plan is not a regular file", path_, "correct JITC_RECORD");
  file_ = std::move(file);
  return {};
}

// What others, and runs before this one, have added since. Lines that cannot be read are nobody's.
Result<void> PlanRecorder::catch_up() {
  std::string added;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t got = ::pread(file_.get(), buffer.data(), buffer.size(), static_cast<off_t>(read_ + added.size()));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(ErrorKind::kStoreUnavailable, errno, "the plan cannot be read", path_);
    if (got == 0) break;
    added.append(buffer.data(), static_cast<std::size_t>(got));
  }
  const std::size_t whole = added.rfind('\n') == std::string::npos ? 0 : added.rfind('\n') + 1;
  read_ += whole;
  ends_in_line_ = whole < added.size();
  for (std::string_view rest = std::string_view(added).substr(0, whole); !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(line.size() + 1);
    if (const auto request = request_in(line, path_)) known_.insert(request_digest(*request));
  }
  return {};
}

Result<bool> PlanRecorder::lacks(const Digest& request) {
  const std::lock_guard lock(mutex_);
  if (known_.contains(request)) return false;
  if (auto opened = open(); !opened) return std::unexpected(std::move(opened.error()));
  if (auto read = catch_up(); !read) return std::unexpected(std::move(read.error()));
  return !known_.contains(request);
}

// One write for a line: others' lines come before or behind it. Behind a line without an end it begins with one; should
// that line be another's who still writes, a blank one comes of it.
Result<void> PlanRecorder::add(const Request& request) {
  auto line = plan_line(request);
  if (!line) return std::unexpected(std::move(line.error()));
  const std::lock_guard lock(mutex_);
  if (ends_in_line_) line->insert(0, 1, '\n');
  if (auto opened = open(); !opened) return opened;
  ssize_t written = -1;
  do {
    written = ::write(file_.get(), line->data(), line->size());
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(line->size())) {
    known_.insert(request_digest(request));
    return {};
  }
  const int error = written < 0 ? errno : ENOSPC;
  return fail_errno(write_error_kind(error), error, "a request cannot be added to the plan", path_,
                    "make room, or record into another file");
}

}  // namespace jitc::common
