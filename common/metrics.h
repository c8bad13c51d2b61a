// One table of what the daemon counts: the counter's name in Stats, its name for Prometheus, its type, its help. The
// daemon's counters, `jitc stats` and the text for Prometheus all follow it.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace jitc::common {

struct MetricInfo {
  enum class Type : std::uint8_t { kCounter, kGauge };
  std::string_view counter;     // in Stats
  std::string_view prometheus;  // jitc_, base units, _total behind a counter
  Type type;
  std::string_view help;  // one line
};
std::span<const MetricInfo> metrics_table();
const MetricInfo* find_metric(std::string_view counter);  // nullptr: a daemon newer than this table

// A value in decimal digits, never in a form with an exponent when it is a whole number.
std::string metric_text(double value);

// Counters and gauges in Prometheus' text exposition format, version 0.0.4, each with these labels. What the table does
// not know is left out: its type is not known.
std::string prometheus_text(const std::map<std::string, double>& values,
                            const std::map<std::string, std::string>& labels);
// What tells the daemons of a site apart, whenever they were started.
std::map<std::string, std::string> metric_labels(const std::string& runtime_dir);

}  // namespace jitc::common
