#include "client/cli/status_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ranges>

#include "client/cli/jobs_text.h"
#include "client/cli/progress.h"
#include "client/cli/terminal_text.h"

namespace jitc::cli {
namespace {

using nlohmann::json;

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

constexpr std::size_t kMostJobs = 20;  // more are counted

std::string job_line(const JobInfo& job, bool utf8) {
  return format("  %-8llu %-14s %6.1f s  %10s  %3u waiting  ", static_cast<unsigned long long>(job.flight),
                phase_text(job).c_str(), job.seconds, bytes_text(job.memory_bytes).c_str(), job.waiters) +
         printable(job.name, utf8) + "\n";
}

// "  slots      2 compiles     /proc/self/status (affinity: 0-1)", with a star before what binds.
std::string limit_line(const json& figure) {
  const double value = figure.value("value", 0.0);
  const auto unit = figure.value("unit", std::string()), note = figure.value("note", std::string());
  const std::string amount = unit == "bytes"     ? bytes_text(static_cast<std::uint64_t>(value))
                             : unit == "percent" ? format("%.1f %%", value)
                                                 : format("%.0f ", value) + unit;
  return format("%c %-9s %14s  ", figure.value("binding", false) ? '*' : ' ',
                figure.value("bounds", std::string()).c_str(), amount.c_str()) +
         figure.value("source", std::string()) + (note.empty() ? "" : " (" + note + ")") + "\n";
}

}  // namespace

std::string duration_text(double seconds) {
  const auto total = static_cast<long>(seconds);
  const long days = total / 86400, hours = total / 3600 % 24, minutes = total / 60 % 60;
  if (days > 0) return format("%ld d %ld h", days, hours);
  if (hours > 0) return format("%ld h %ld min", hours, minutes);
  if (minutes > 0) return format("%ld min %ld s", minutes, total % 60);
  return format("%ld s", total);
}

std::string status_text(std::string_view hello_json, std::string_view jobs_json, std::string_view stats_json,
                        double uptime_seconds, bool utf8) {
  const json hello = json::parse(hello_json), stats = json::parse(stats_json);
  const std::vector<JobInfo> jobs = jobs_of(jobs_json);
  const auto counter = [&](const char* name) { return stats.value(name, std::uint64_t{0}); };
  std::string compilers;
  for (const auto& compiler : hello.value("compilers", json::array()))
    compilers += (compilers.empty() ? "" : ", ") + compiler.value("name", std::string());

  std::string text = "daemon     pid " + std::to_string(hello.value("pid", std::int64_t{0})) + ", version " +
                     hello.value("version", std::string());
  if (uptime_seconds >= 0) text += ", up " + duration_text(uptime_seconds);
  if (hello.value("draining", false)) text += ", draining: it ends when its compiles have";
  const auto queued = std::ranges::count(jobs, "queued", &JobInfo::phase);
  const auto running = std::ranges::count(jobs, "running", &JobInfo::phase);
  text += "\nstore      " + printable(hello.value("store", std::string()), utf8);
  text += "\ncompilers  " + compilers + "; " + std::to_string(running) + " of " +
          std::to_string(hello.value("max_compilers", 0u)) + " running, " + std::to_string(queued) + " queued";
  text += "\nmemory     " + bytes_text(counter("memory_reserved_bytes")) + " of " +
          bytes_text(hello.value("memory_budget_bytes", std::uint64_t{0})) + " reserved, peak " +
          bytes_text(counter("memory_peak_bytes")) + "; the daemon itself " + bytes_text(counter("daemon_rss_bytes"));
  if (const auto enforcement = hello.value("enforcement", std::string()); !enforcement.empty())
    text += "\nlimits     kept by " + enforcement;
  text += "\nrequests   " + std::to_string(counter("requests")) + ": " + std::to_string(counter("hits")) + " hits, " +
          std::to_string(counter("merged")) + " merged, " + std::to_string(counter("compiles_started")) +
          " compiles started, " + std::to_string(counter("compiles_failed")) + " failed\n";
  const json limits = hello.value("limits", json::array());
  if (!limits.empty()) text += "limits     what bounds compiles at once and their memory; * binds\n";
  for (const auto& figure : limits) text += limit_line(figure);
  if (!jobs.empty()) text += "jobs\n";
  for (const auto& job : jobs | std::views::take(kMostJobs)) text += job_line(job, utf8);
  if (jobs.size() > kMostJobs)
    text += "  ... " + std::to_string(jobs.size() - kMostJobs) + " more: 'jitc jobs' lists all\n";
  return text;
}

}  // namespace jitc::cli
