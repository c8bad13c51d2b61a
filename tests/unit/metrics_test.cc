// One table names what the daemon counts; Prometheus reads it.
#include "common/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "common/files.h"
#include "common/owner.h"
#include "daemon/observe/counters.h"
#include "daemon/observe/metrics_file.h"
#include "tests/support/prometheus_text.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using ::testing::HasSubstr;
using testing::read_prometheus;
using testing::TemporaryDirectory;

TEST(MetricsTable, HasEveryCounterOfStatsAndNoOther) {
  std::set<std::string> counted, listed;
  for (const auto& [name, value] : observe::collect({}, {})) counted.insert(name);
  schedule::PredictionError error;
  error.record(2, 1);
  for (const auto& [name, value] : observe::gauges(error)) counted.insert(name);
  for (const auto& metric : metrics_table()) EXPECT_TRUE(listed.emplace(metric.counter).second) << metric.counter;
  EXPECT_EQ(counted, listed);
}

TEST(MetricsTable, NamesFollowTheRulesOfPrometheus) {
  std::set<std::string_view> names;
  for (const auto& metric : metrics_table()) {
    EXPECT_TRUE(names.insert(metric.prometheus).second) << metric.prometheus;
    EXPECT_TRUE(metric.prometheus.starts_with("jitc_")) << metric.prometheus;
    EXPECT_EQ(metric.counter.find("bytes") != std::string_view::npos, metric.prometheus.ends_with("_bytes"));
    EXPECT_FALSE(metric.help.empty()) << metric.counter;
    EXPECT_EQ(metric.help.find_first_of("\n\\"), std::string_view::npos) << metric.counter;
  }
}

TEST(PrometheusText, OfAllCountersIsReadByAStrictReader) {
  std::map<std::string, double> counters;
  for (const auto& metric : metrics_table())
    counters[std::string(metric.counter)] = static_cast<double>(counters.size()) + 0.5;
  const auto metrics = read_prometheus(prometheus_text(counters, {{"node", "n01"}, {"runtime_dir", "/run/jitc"}}));
  ASSERT_EQ(metrics.size(), metrics_table().size());
  for (const auto& metric : metrics_table()) {
    const auto& read = metrics.at(std::string(metric.prometheus));
    EXPECT_EQ(read.help, metric.help);
    EXPECT_EQ(read.type, metric.type == MetricInfo::Type::kCounter ? "counter" : "gauge");
    EXPECT_EQ(read.samples.at(R"({node="n01",runtime_dir="/run/jitc"})"), counters.at(std::string(metric.counter)));
  }
}

TEST(PrometheusText, WholeNumbersHaveNoExponent) {
  EXPECT_EQ(metric_text(1e7), "10000000");
  EXPECT_EQ(metric_text(0x1p53), "9007199254740992");
  EXPECT_EQ(metric_text(1.125), "1.125");
}

TEST(PrometheusText, EscapesLabelsAndReplacesWhatIsNotUtf8) {
  const std::string text = prometheus_text({{"hits", 7}}, {{"runtime_dir", "a\"b\\c\nd\xff"}});
  EXPECT_THAT(text, HasSubstr(R"(jitc_hits_total{runtime_dir="a\"b\\c\nd?"} 7)"));
  EXPECT_EQ(read_prometheus(text).size(), 1u);
}

TEST(PrometheusText, LeavesOutWhatItDoesNotKnowAndWhatIsNotThere) {
  EXPECT_EQ(prometheus_text({{"of_a_newer_daemon", 7}}, {}), "");
  EXPECT_THAT(prometheus_text({{"hits", 7}}, {}), HasSubstr("\njitc_hits_total 7\n"));
}

TEST(MetricsFile, IsReplacedAsAWholeAndReadableByAll) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/jitc.prom";
  const mode_t before = ::umask(0077);
  for (const char* text : {"jitc_hits_total 1\n", "jitc_hits_total 2\n"}) {
    const auto written = observe::write_metrics_file(path, text);
    ASSERT_TRUE(written) << to_line(written.error());
    EXPECT_EQ(read_file(path), text);
  }
  ::umask(before);
  struct stat status{};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0644U);
  const std::filesystem::directory_iterator entries(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1) << "something is left beside it";
}

TEST(MetricsFile, OnlyWhatTheDeadLeftIsRemoved) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/jitc.prom";
  Owner dead = Owner::this_process();
  ++dead.start;  // another process that had this pid
  Owner elsewhere = Owner::this_process();
  elsewhere.host += "x";
  const auto name_of = [&](const Owner& owner) { return path + "." + temp_name(owner) + ".tmp"; };
  const std::string theirs = name_of(elsewhere), mine = name_of(Owner::this_process()), left = name_of(dead);
  const std::string unknown = path + ".tmp";
  for (const std::string& file : {theirs, mine, left, unknown}) std::ofstream(file) << "x";
  ASSERT_TRUE(observe::write_metrics_file(path, "y"));
  EXPECT_FALSE(std::filesystem::exists(left));
  for (const std::string& file : {theirs, mine, unknown}) EXPECT_EQ(read_file(file), "x") << file;
}

TEST(MetricsFile, AFailureNamesTheFileAndLeavesNothing) {
  const TemporaryDirectory directory;
  const auto nowhere = observe::write_metrics_file(directory.path() + "/none/jitc.prom", "x");
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(to_line(nowhere.error()), HasSubstr("/none/jitc.prom"));
  std::filesystem::create_directories(directory.path() + "/taken/below");
  EXPECT_FALSE(observe::write_metrics_file(directory.path() + "/taken", "x"));
  const std::filesystem::directory_iterator entries(directory.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(MetricsFile, FollowsALinkAndLeavesWhatIsNoFileAlone) {
  const TemporaryDirectory directory;
  const std::string link = directory.path() + "/link.prom", target = directory.path() + "/target.prom";
  std::filesystem::create_symlink("target.prom", link);
  for (const char* text : {"1\n", "2\n"}) {
    ASSERT_TRUE(observe::write_metrics_file(link, text));
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_file(target), text);
  }
  const std::string pipe = directory.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::string to_pipe = directory.path() + "/to_pipe";
  std::filesystem::create_symlink("pipe", to_pipe);
  for (const std::string& path : {pipe, to_pipe}) {
    const auto written = observe::write_metrics_file(path, "x");
    ASSERT_FALSE(written);
    EXPECT_THAT(to_line(written.error()), HasSubstr("regular file"));
    EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  }
  std::filesystem::create_symlink("loop", directory.path() + "/loop");
  EXPECT_FALSE(observe::write_metrics_file(directory.path() + "/loop", "x"));
}

// Two containers may share the directory and have the same process ids.
TEST(MetricsFile, TouchesNoFileOfAnotherWriter) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/jitc.prom";
  const std::string others = path + "." + std::to_string(::getpid()) + ".tmp";
  ASSERT_TRUE(observe::write_metrics_file(others, "half of it"));
  ASSERT_TRUE(observe::write_metrics_file(path, "x"));
  EXPECT_EQ(read_file(others), "half of it");
}

}  // namespace
}  // namespace jitc::common
