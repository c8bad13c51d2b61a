#include "client/cli/top_text.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>

#include "client/cli/progress.h"
#include "client/cli/status_text.h"

namespace jitc::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kPlainColumns = 100;  // of a text that is on no terminal: the head's
constexpr std::size_t kMostBar = 40;
constexpr double kRateSeconds = 60;

std::string per(double part, double whole) {
  return whole > 0 ? std::to_string(std::lround(100 * part / whole)) + " %" : "-";
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), value < 10 ? "%.1f" : "%.0f", value);
  return text.data();
}

// "7.3 s", "2:05", "1:02:05".
std::string clock_text(double seconds) {
  if (seconds < 60) return number(seconds) + " s";
  const auto total = static_cast<long>(seconds);
  std::array<char, 32> text{};
  if (total < 3600) {
    std::snprintf(text.data(), text.size(), "%ld:%02ld", total / 60, total % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%ld:%02ld:%02ld", total / 3600, total / 60 % 60, total % 60);
  }
  return text.data();
}

std::string phase_text(const TopJob& job) {
  if (job.phase == "queued" && job.place > 0) return "queued " + std::to_string(job.place);
  if (job.phase == "looking_up") return "look-up";
  if (job.phase == "running" && job.attempt > 1) return "running, " + std::to_string(job.attempt) + ".";
  return job.phase;
}

struct Column {
  const char* title;
  std::size_t width;
  bool to_the_right;
  std::size_t from;  // shown on screens of so many columns
  std::function<std::string(const TopJob&)> text;
};

// The name comes behind them and takes the rest.
const std::array<Column, 6>& columns() {
  static const std::array<Column, 6> all{{
      {"FLIGHT", 7, true, 48, [](const TopJob& job) { return std::to_string(job.flight); }},
      {"PHASE", 11, false, 0, phase_text},
      {"TIME", 8, true, 0, [](const TopJob& job) { return clock_text(job.seconds); }},
      {"MEMORY", 8, true, 34,
       [](const TopJob& job) { return job.memory_bytes > 0 ? bytes_text(job.memory_bytes) : "-"; }},
      {"LIMIT", 8, true, 58, [](const TopJob& job) { return job.limit_bytes > 0 ? bytes_text(job.limit_bytes) : "-"; }},
      {"CLIENT", 12, false, 72, [](const TopJob& job) { return job.client; }},
  }};
  return all;
}

// One row of the table: `cell(column)` for the columns that fit, then the name, of which the end says most.
std::string row(const Screen& screen, const std::function<std::string(const Column&)>& cell, const std::string& name) {
  const std::size_t width = screen.columns > 0 ? screen.columns : std::string::npos;
  std::string line;
  for (const Column& column : columns()) {
    if (width < column.from) continue;
    const std::string text = printable(cell(column), screen.utf8);
    const std::size_t blanks = column.width - std::min(column.width, columns_of(text));
    line += column.to_the_right ? std::string(blanks, ' ') + fitted(text, column.width - blanks, screen.utf8)
                                : fitted(text, column.width, screen.utf8);
    line += ' ';
  }
  const std::string shown = printable(name, screen.utf8);
  if (screen.columns == 0) return line + shown;
  const std::size_t room = screen.columns - std::min(screen.columns, columns_of(line));
  return line + fitted(shown, room, screen.utf8, Cut::kFront);
}

std::vector<std::string> head(const TopView& view, const Screen& screen) {
  const std::size_t width = screen.columns > 0 ? screen.columns : kPlainColumns;
  const std::size_t gauge = std::min(kMostBar, width / 3);
  std::size_t running = 0, queued = 0;
  for (const TopJob& job : view.jobs) {
    running += job.phase == "running";
    queued += job.phase == "queued";
  }
  const auto share = [](std::uint64_t part, std::uint64_t whole) {
    return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
  };
  std::string daemon = "jitcd " + view.version + ", pid " + std::to_string(view.pid);
  if (view.uptime_seconds >= 0) daemon += ", up " + duration_text(view.uptime_seconds);
  if (view.draining) daemon += ", draining";
  return {daemon,
          "compilers  " + bar(gauge, share(running, view.slots), 0, screen.utf8) + " " + std::to_string(running) +
              " of " + std::to_string(view.slots) + " running, " + std::to_string(queued) + " queued",
          "memory     " +
              bar(gauge, share(view.memory_bytes, view.budget_bytes), share(view.reserved_bytes, view.budget_bytes),
                  screen.utf8) +
              " " + bytes_text(view.memory_bytes) + " of " + bytes_text(view.budget_bytes) + ", " +
              bytes_text(view.reserved_bytes) + " reserved, peak " + bytes_text(view.peak_bytes),
          "requests   " + std::to_string(view.requests) + ": " +
              per(static_cast<double>(view.hits), static_cast<double>(view.requests)) + " hits, " +
              std::to_string(view.merged) + " merged, " + std::to_string(view.compiles_failed) + " failed; " +
              number(view.compiles_per_minute) + " compiles a minute",
          ""};
}

}  // namespace

TopView top_view(std::string_view hello_json, std::string_view jobs_json, std::string_view stats_json) {
  const json hello = json::parse(hello_json), jobs = json::parse(jobs_json), stats = json::parse(stats_json);
  const auto counter = [&](const char* name) { return stats.value(name, std::uint64_t{0}); };
  TopView view;
  view.version = hello.value("version", std::string());
  view.pid = hello.value("pid", std::int64_t{0});
  view.draining = hello.value("draining", false);
  view.slots = hello.value("max_compilers", 0U);
  view.budget_bytes = hello.value("memory_budget_bytes", std::uint64_t{0});
  view.memory_bytes = counter("memory_bytes");
  view.reserved_bytes = counter("memory_reserved_bytes");
  view.peak_bytes = counter("memory_peak_bytes");
  view.requests = counter("requests");
  view.hits = counter("hits");
  view.merged = counter("merged");
  view.compiles_started = counter("compiles_started");
  view.compiles_failed = counter("compiles_failed");
  for (const auto& job : jobs.value("jobs", json::array())) {
    const auto phase = job.value("phase", std::string());
    view.jobs.push_back({.flight = job.value("flight", std::uint64_t{0}),
                         .phase = phase,
                         .place = job.value("place", 0U),
                         .attempt = job.value("attempt", 0U),
                         .seconds = job.value(phase == "running" ? "elapsed_seconds" : "waiting_seconds", 0.0),
                         .memory_bytes = job.value("memory_bytes", std::uint64_t{0}),
                         .limit_bytes = job.value("limit_bytes", std::uint64_t{0}),
                         .client = job.value("job", std::string()),
                         .name = job.value("name", std::string())});
  }
  return view;
}

std::string top_text(const TopView& view, const Screen& screen) {
  std::string text;
  std::size_t rows = 0;
  const auto add = [&](const std::string& line) {
    text += line + "\n";
    ++rows;
  };
  for (const std::string& line : head(view, screen)) add(line);
  const std::string titles = row(screen, [](const Column& column) { return column.title; }, "NAME");
  add(titles);
  for (std::size_t i = 0; i < view.jobs.size(); ++i) {
    const std::size_t left = view.jobs.size() - i;
    if (screen.rows > 0 && rows + 1 >= screen.rows && left > 1) {
      add("... " + std::to_string(left) + " more");
      break;
    }
    add(row(screen, [&](const Column& column) { return column.text(view.jobs[i]); }, view.jobs[i].name));
  }
  text = clipped(text, screen);
  if (const auto at = screen.colours ? text.find(titles) : std::string::npos; at != std::string::npos)
    text.replace(at, titles.size(), "\033[7m" + titles + "\033[m");
  return text;
}

void CompileRate::add(double seconds, std::uint64_t compiles_started) {
  if (!looks_.empty() && compiles_started < looks_.back().second) looks_.clear();
  looks_.emplace_back(seconds, compiles_started);
  while (looks_.size() > 2 && seconds - looks_[1].first >= kRateSeconds) looks_.pop_front();
}

double CompileRate::per_minute(double uptime_seconds) const {
  if (looks_.empty()) return 0;
  const bool one = looks_.size() == 1;
  const double seconds = one ? uptime_seconds : looks_.back().first - looks_.front().first;
  const std::uint64_t compiles = looks_.back().second - (one ? 0 : looks_.front().second);
  return seconds > 0 ? 60 * static_cast<double>(compiles) / seconds : 0;
}

}  // namespace jitc::cli
