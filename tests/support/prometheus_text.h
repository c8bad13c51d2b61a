// A strict reader of Prometheus' text exposition format (version 0.0.4): what it does not take, a scraper may not
// either.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>

namespace jitc::testing {

struct PrometheusMetric {
  std::string type, help;
  std::map<std::string, double> samples;  // by their label sets, as written
};

// Each metric once, HELP and TYPE before its samples, names and labels as the format allows, counters named _total.
inline std::map<std::string, PrometheusMetric> read_prometheus(const std::string& text) {
  static const std::regex help(R"(# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) ([^\n]+))");
  static const std::regex type(R"(# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge))");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"(?:,(?=[^}])|(?=\})))*\})? (-?[0-9]+(?:\.[0-9]+)?))re");
  std::map<std::string, PrometheusMetric> metrics;
  std::string current;
  EXPECT_TRUE(text.empty() || text.back() == '\n') << "no line feed at the end";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      EXPECT_FALSE(metrics.contains(match[1])) << "twice: " << line;
      current = match[1];
      metrics[current].help = match[2];
    } else if (std::regex_match(line, match, type)) {
      EXPECT_EQ(match[1], current) << line;
      EXPECT_TRUE(metrics[current].type.empty() && metrics[current].samples.empty()) << line;
      metrics[current].type = match[2];
      EXPECT_EQ(match[2] == "counter", current.ends_with("_total")) << line;
    } else if (std::regex_match(line, match, sample)) {
      EXPECT_EQ(match[1], current) << "not with its metric: " << line;
      EXPECT_FALSE(metrics[current].type.empty()) << "no type: " << line;
      EXPECT_TRUE(metrics[current].samples.emplace(match[2], std::stod(match[3])).second) << "twice: " << line;
    } else {
      ADD_FAILURE() << "not in the format: " << line;
    }
  }
  for (const auto& [name, metric] : metrics) EXPECT_FALSE(metric.samples.empty()) << name;
  return metrics;
}

}  // namespace jitc::testing
