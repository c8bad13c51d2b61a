#include "client/cli/jobs_text.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "client/cli/json_text.h"
#include "client/cli/progress.h"
#include "client/cli/terminal_text.h"

namespace jitc::cli {
namespace {

using common::ErrorKind;
using common::fail;
using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::size_t kShownDigits = 12;  // of a key
constexpr std::size_t kFewestDigits = 4;

// Digits that begin with 0 are a key's.
std::optional<std::uint64_t> flight_number(std::string_view text) {
  if (text.starts_with('0')) return std::nullopt;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::string row(const std::string& flight, const std::string& key, const std::string& phase, const std::string& seconds,
                const std::string& memory, const std::string& waiting, const std::string& name) {
  std::array<char, 128> text{};
  std::snprintf(text.data(), text.size(), "%-8s %-12s %-14s %8s %10s %8s  ", flight.c_str(), key.c_str(), phase.c_str(),
                seconds.c_str(), memory.c_str(), waiting.c_str());
  return text.data() + name + "\n";
}

}  // namespace

std::string phase_text(const JobInfo& job) {
  return job.place > 0 ? job.phase + " " + std::to_string(job.place) : job.phase;
}

std::vector<JobInfo> jobs_of(std::string_view text) {
  std::vector<JobInfo> jobs;
  const json reply = json::parse(text);
  for (const auto& job : reply.value("jobs", json::array())) {
    const auto phase = job.value("phase", std::string());
    jobs.push_back({.flight = job.value("flight", std::uint64_t{0}),
                    .key = job.value("key", std::string()),
                    .name = job.value("name", std::string()),
                    .phase = phase,
                    .waiters = job.value("waiters", 0u),
                    .place = job.value("place", 0u),
                    .seconds = job.value(phase == "running" ? "elapsed_seconds" : "waiting_seconds", 0.0),
                    .memory_bytes = job.value("memory_bytes", std::uint64_t{0}),
                    .predicted_bytes = job.value("predicted_bytes", std::uint64_t{0})});
  }
  return jobs;
}

bool is_draining(std::string_view text) { return json::parse(text).value("draining", false); }

std::string jobs_table(const std::vector<JobInfo>& jobs, bool utf8) {
  std::string text = row("FLIGHT", "KEY", "PHASE", "SECONDS", "MEMORY", "WAITING", "NAME");
  for (const auto& job : jobs) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%.1f", job.seconds);
    text += row(std::to_string(job.flight), job.key.substr(0, kShownDigits), phase_text(job), seconds.data(),
                bytes_text(job.memory_bytes), std::to_string(job.waiters), printable(job.name, utf8));
  }
  return text;
}

std::string description(const JobInfo& job, bool utf8) {
  return "flight " + std::to_string(job.flight) + ", " + printable(job.name, utf8) + " (" + phase_text(job) + ", " +
         std::to_string(job.waiters) + " waiting)";
}

std::string cancelled_json(const std::string& id, const common::Result<JobInfo>& job) {
  ordered_json object = {{"id", id}};
  if (!job) {
    object["error"] = ordered_json::parse(common::to_json(job.error()));
    return one_line(object);
  }
  object["flight"] = job->flight;
  object["key"] = job->key;
  object["name"] = job->name;
  object["phase"] = job->phase;
  object["waiters"] = job->waiters;
  return one_line(object);
}

std::string daemon_json(const std::string& state, const std::string& runtime_dir, std::int64_t pid) {
  ordered_json object = {{"state", state}, {"runtime_dir", runtime_dir}};
  if (pid != 0) object["pid"] = pid;
  return one_line(object);
}

common::Result<JobInfo> find_job(const std::vector<JobInfo>& jobs, std::string_view id, bool utf8) {
  std::string digits(id);  // of a key, as somebody may write them
  for (char& c : digits)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const auto number = flight_number(id);
  std::vector<const JobInfo*> named;
  for (const auto& job : jobs) {
    if (number && job.flight == *number) return job;
    if (id.size() >= kFewestDigits && job.key.starts_with(digits)) named.push_back(&job);
  }
  if (named.size() == 1) return *named.front();
  if (named.empty())
    return fail(ErrorKind::kUsage, "no such compile waits or runs", std::string(id),
                "'jitc jobs' lists them: name one by the number of its flight, or by four or more digits of its key");
  std::string which;
  for (const JobInfo* job : named) which += (which.empty() ? "" : "; ") + description(*job, utf8);
  return fail(ErrorKind::kUsage, "several keys begin so: " + which, std::string(id), "give more digits, or the flight");
}

}  // namespace jitc::cli
