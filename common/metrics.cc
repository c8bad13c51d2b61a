#include "common/metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "common/files.h"
#include "common/utf8.h"

namespace jitc::common {
namespace {

using enum MetricInfo::Type;

constexpr auto kTable = std::to_array<MetricInfo>({
    {"requests", "jitc_requests_total", kCounter, "requests of every kind, hits and look-ups included"},
    {"hits", "jitc_hits_total", kCounter, "requests that the store answered"},
    {"hits_direct", "jitc_hits_direct_total", kCounter, "hits that clients served themselves and told of"},
    {"lookups", "jitc_lookups_total", kCounter, "questions for an artifact by its key"},
    {"merged", "jitc_merged_total", kCounter, "requests that joined a compile under way"},
    {"compiles_started", "jitc_compiles_started_total", kCounter, "starts of a compiler, further attempts included"},
    {"compiles_failed", "jitc_compiles_failed_total", kCounter, "compiles whose answer was an error"},
    {"out_of_memory", "jitc_out_of_memory_total", kCounter, "failed compiles that had too little memory to the last"},
    {"retries", "jitc_retries_total", kCounter, "further attempts of a compile"},
    {"rung_alone", "jitc_rung_alone_total", kCounter, "attempts alone and with more memory, after out of memory"},
    {"rung_degraded", "jitc_rung_degraded_total", kCounter,
     "attempts at another level of optimisation that takes less memory, after out of memory"},
    {"rung_crashed", "jitc_rung_crashed_total", kCounter, "attempts after a compiler crashed"},
    {"rung_worker_lost", "jitc_rung_worker_lost_total", kCounter, "attempts after the worker died"},
    {"degraded", "jitc_degraded_total", kCounter,
     "compiles done at another level of optimisation than asked, which took less memory"},
    {"cancelled", "jitc_cancelled_total", kCounter, "compiles ended by order, or because nobody waited any more"},
    {"elsewhere", "jitc_elsewhere_total", kCounter, "compiles that waited for another node to do them"},
    {"refused_queue_full", "jitc_refused_queue_full_total", kCounter, "requests refused because the queue was full"},
    {"failures_remembered", "jitc_failures_remembered_total", kCounter, "requests answered by an earlier failure"},
    {"cc_requests", "jitc_cc_requests_total", kCounter, "compiles and links that 'jitc cc' understood"},
    {"cc_hits", "jitc_cc_hits_total", kCounter, "of these, those that the store answered"},
    {"cc_passed", "jitc_cc_passed_total", kCounter,
     "commands of 'jitc cc' that its compiler ran unchanged, in their turn"},
    {"published", "jitc_published_total", kCounter, "artifacts put into the store"},
    {"evicted", "jitc_evicted_total", kCounter, "artifacts removed to keep the store within its size"},
    {"quarantined", "jitc_quarantined_total", kCounter, "store entries put aside because they did not verify"},
    {"untrusted", "jitc_untrusted_total", kCounter,
     "store entries not used because another user can have made or changed them"},
    {"publish_failures", "jitc_publish_failures_total", kCounter, "artifacts that the store did not take"},
    {"refused_peers", "jitc_refused_peers_total", kCounter, "connections of other users, refused"},
    {"canaries_run", "jitc_canaries_run_total", kCounter,
     "modules that were called and compared before anybody got them"},
    {"canaries_refused", "jitc_canaries_refused_total", kCounter, "of these: modules that were wrong"},
    {"canaries_unfinished", "jitc_canaries_unfinished_total", kCounter, "of these: nothing could be said"},
    {"worker_restarts", "jitc_worker_restarts_total", kCounter, "times that the worker died and was started again"},
    {"running", "jitc_running_compiles", kGauge, "compiles that run now"},
    {"running_peak", "jitc_running_compiles_peak", kGauge, "most compiles that ever ran at once"},
    {"max_compilers", "jitc_max_compilers", kGauge, "compiles that may run at once"},
    {"draining", "jitc_draining", kGauge, "1: it finishes what it took on and compiles nothing new"},
    {"memory_reserved_bytes", "jitc_memory_reserved_bytes", kGauge, "memory kept for the compiles that run"},
    {"memory_budget_bytes", "jitc_memory_budget_bytes", kGauge, "memory that compiles and spare children may take"},
    {"memory_bytes", "jitc_memory_bytes", kGauge, "memory of compiles and spare children"},
    {"memory_peak_bytes", "jitc_memory_peak_bytes", kGauge, "most memory that compiles and spare children ever took"},
    {"prediction_ratio_p5", "jitc_prediction_ratio_p5", kGauge,
     "predicted over measured peaks of memory, 5th percentile"},
    {"prediction_ratio_p50", "jitc_prediction_ratio_p50", kGauge, "the same, median"},
    {"prediction_ratio_p95", "jitc_prediction_ratio_p95", kGauge, "the same, 95th percentile"},
    {"peaks_recalled", "jitc_peaks_recalled", kGauge, "peaks of memory learned from the store at the daemon's start"},
    {"daemon_rss_bytes", "jitc_daemon_resident_bytes", kGauge, "resident memory of the daemon itself"},
});

// As the format writes a label's value.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : valid_utf8(text)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c == '\n' ? "\\n" : std::string(1, c);
  }
  return out;
}

std::string label_set(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [name, value] : labels) text += (text.empty() ? "" : ",") + name + "=\"" + escaped(value) + "\"";
  return text.empty() ? text : "{" + text + "}";
}

}  // namespace

std::span<const MetricInfo> metrics_table() { return kTable; }

const MetricInfo* find_metric(std::string_view counter) {
  const auto found = std::ranges::find(kTable, counter, &MetricInfo::counter);
  return found == kTable.end() ? nullptr : &*found;
}

std::string metric_text(double value) {
  std::array<char, 32> digits;
  const bool whole = value == std::floor(value) && std::abs(value) < 0x1p63;
  const auto end = whole ? std::to_chars(digits.begin(), digits.end(), static_cast<std::int64_t>(value)).ptr
                         : std::to_chars(digits.begin(), digits.end(), value).ptr;
  return {digits.begin(), end};
}

std::string prometheus_text(const std::map<std::string, double>& values,
                            const std::map<std::string, std::string>& labels) {
  const std::string set = label_set(labels);
  std::string text;
  for (const MetricInfo& metric : kTable) {
    const auto found = values.find(std::string(metric.counter));
    if (found == values.end()) continue;  // an older daemon, or nothing to tell yet
    const std::string name(metric.prometheus);
    text += "# HELP " + name + " " + std::string(metric.help) + "\n";
    text += "# TYPE " + name + (metric.type == kCounter ? " counter\n" : " gauge\n");
    text += name + set + " " + metric_text(found->second) + "\n";
  }
  return text;
}

std::map<std::string, std::string> metric_labels(const std::string& runtime_dir) {
  return {{"node", host_name()}, {"runtime_dir", runtime_dir}};
}

}  // namespace jitc::common
