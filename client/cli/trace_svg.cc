// The trace as a picture: slots as rows of bars, the queue as thin lines, memory below its budget, one time axis.
#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/cli/progress.h"
#include "client/cli/terminal_text.h"
#include "client/cli/trace_view.h"

namespace jitc::cli {
namespace {

using Kind = TraceSpan::Kind;

// Pixels.
constexpr double kWidth = 1200, kLeft = 84, kRight = 24;
constexpr double kSlotRow = 24, kSlotBar = 20;
constexpr double kAnswerRow = 14;
constexpr double kLine = 5, kMostLines = 110;  // of a waiting flight; of all together
constexpr double kMemory = 150;
constexpr double kGap = 22;         // between two sections
constexpr double kLeastBar = 0.8;   // what is shorter is still to be seen
constexpr double kCharacter = 6.2;  // mean width, at the size of names in bars
constexpr std::size_t kTicks = 12;

struct Look {
  std::string_view outcome, colour, words;
};
// Colours that those who do not tell red from green tell apart.
constexpr std::string_view kRuns = "RUNS", kOther = "OTHER";
constexpr auto kLooks = std::to_array<Look>({{"DONE", "#0072b2", "compiled"},
                                             {"DEGRADED", "#f0e442", "compiled at another level"},
                                             {kRuns, "#56b4e9", "runs still"},
                                             {"INVALID_SOURCE", "#e69f00", "invalid source"},
                                             {"OUT_OF_MEMORY", "#d55e00", "out of memory"},
                                             {"COMPILER_CRASHED", "#cc79a7", "crashed"},
                                             {"MISCOMPILED", "#7f3c8d", "wrong, and refused"},
                                             {"TIMED_OUT", "#8c6d1f", "timed out"},
                                             {"CANCELLED", "#9a9a9a", "cancelled"},
                                             {"HIT", "#009e73", "answered by the store"},
                                             {kOther, "#444444", "refused or failed otherwise"}});

const Look& look_of(const TraceSpan& span) {
  const std::string_view outcome = span.open ? kRuns : std::string_view(span.outcome);
  const auto found = std::ranges::find(kLooks, outcome, &Look::outcome);
  return found == kLooks.end() ? kLooks.back() : *found;
}

std::string number(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  return text.data();
}

// For text and attributes; without the characters that XML cannot say.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text, true)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string seconds_text(double seconds) {
  std::array<char, 32> text{};
  if (seconds < 1e-3) {
    std::snprintf(text.data(), text.size(), "%.0f µs", seconds * 1e6);
  } else if (seconds < 1) {
    std::snprintf(text.data(), text.size(), "%.3g ms", seconds * 1e3);
  } else if (seconds < 120) {
    std::snprintf(text.data(), text.size(), "%.3g s", seconds);
  } else {
    std::snprintf(text.data(), text.size(), "%ld min %02ld s", std::lround(seconds) / 60, std::lround(seconds) % 60);
  }
  return text.data();
}

// The smallest usual step that needs no more than `most` ticks for `range` (of any unit): 1, 2 or 5 times a power of
// ten; for `clock` also what divides a minute and an hour.
double tick_step(double range, std::size_t most, bool clock) {
  const double least = range / static_cast<double>(most);
  if (clock && least > 5) {
    for (const double step : {10., 15., 30., 60., 120., 300., 600., 900., 1800., 3600., 7200., 21600., 43200., 86400.})
      if (step >= least) return step;
  }
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1., 2., 5.})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::string wall_clock(std::uint64_t unix_microseconds) {
  const auto seconds = static_cast<time_t>(unix_microseconds / 1'000'000);
  tm parts{};
  std::array<char, 64> text{};
  if (::localtime_r(&seconds, &parts) == nullptr) return {};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

// Which row each span lies in, so that none overlap, with as few rows as can be; and how many there are.
std::pair<std::vector<std::size_t>, std::size_t> packed(const std::vector<const TraceSpan*>& spans) {
  using End = std::pair<std::uint64_t, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends;  // of the rows that are taken
  std::set<std::size_t> free;
  std::vector<std::size_t> rows;
  std::size_t count = 0;
  for (const TraceSpan* span : spans) {
    while (!ends.empty() && ends.top().first <= span->begin) {
      free.insert(ends.top().second);
      ends.pop();
    }
    const std::size_t row = free.empty() ? count++ : *free.begin();
    free.erase(row);
    rows.push_back(row);
    ends.emplace(std::max(span->end, span->begin + 1), row);
  }
  return {rows, count};
}

class Timeline {
 public:
  explicit Timeline(const TraceView& view) : view_(view) {
    for (const TraceSpan& span : view_.spans) {
      begin_ = std::min(begin_, span.begin);
      end_ = std::max(end_, span.end);
    }
    if (begin_ > end_) begin_ = end_ = view_.now;
    end_ = std::max(end_, begin_ + 1000);
  }

  std::string text() {
    heading();
    slots();
    lines("queue", Kind::kQueued, "waits");
    lines("elsewhere", Kind::kElsewhere, "another node compiles it");
    lines("publish", Kind::kPublishing, "publishes");
    answers();
    memory();
    axis();
    legend();
    return "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(kWidth) + " " + number(y_) +
           "\" width=\"" + number(kWidth) + "\" height=\"" + number(y_) +
           "\" font-family=\"sans-serif\" font-size=\"12\">\n"
           "<style>.n{font-size:11px;fill:#fff;pointer-events:none}.g{stroke:#e3e3e3;stroke-width:1}"
           ".d{fill:#666}.f{fill:#f7f7f7}rect:hover,line:hover{opacity:.7}</style>\n"
           "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" +
           grid_ + body_ + "</svg>\n";
  }

 private:
  static constexpr double kTop = 70;

  double x(std::uint64_t time) const {
    const double part =
        static_cast<double>(std::clamp(time, begin_, end_) - begin_) / static_cast<double>(end_ - begin_);
    return kLeft + part * (kWidth - kLeft - kRight);
  }
  double seconds_at(std::uint64_t time) const { return static_cast<double>(time - begin_) * 1e-6; }

  void write(double x, double y, std::string_view text, std::string_view attributes = {}) {
    body_ += "<text x=\"" + number(x) + "\" y=\"" + number(y) + "\"" + std::string(attributes) + ">" + escaped(text) +
             "</text>\n";
  }
  void label(double y, std::string_view text) { write(kLeft - 8, y, text, " text-anchor=\"end\" class=\"d\""); }
  void background(double height) {
    grid_ += "<rect x=\"" + number(kLeft) + "\" y=\"" + number(y_) + "\" width=\"" + number(kWidth - kLeft - kRight) +
             "\" height=\"" + number(height) + "\" class=\"f\"/>\n";
  }

  std::string tooltip(const TraceSpan& span, std::string_view what) const {
    std::string text = span.name + "\n" + std::string(what);
    if (span.end > span.begin) text += " " + seconds_text(span.seconds());
    text += ", from " + seconds_text(seconds_at(span.begin));
    if (span.flight > 0) text += "\nflight " + std::to_string(span.flight);
    if (span.attempt > 0) text += ", attempt " + std::to_string(span.attempt) + ", slot " + std::to_string(span.lane);
    if (span.peak_bytes > 0) text += "\npeak " + bytes_text(span.peak_bytes);
    if (span.limit_bytes > 0) text += (span.peak_bytes > 0 ? ", limit " : "\nlimit ") + bytes_text(span.limit_bytes);
    if (!span.client.empty()) text += "\nclient " + span.client;
    if (!span.compiler.empty()) text += ", compiler " + span.compiler;
    // Line by line: a name with a line break is one line.
    std::string out;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      out += (at > 0 ? "\n" : "") + escaped(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
    return "<title>" + out + "</title>";
  }

  void heading() {
    std::map<std::string_view, std::size_t> counts;
    std::size_t attempts = 0;
    for (const TraceSpan& span : view_.spans) {
      if (span.kind == Kind::kRunning) ++attempts;
      if (span.kind == Kind::kRunning || is_answer(span)) {
        ++counts[look_of(span).outcome];
        seen_.insert(look_of(span).outcome);
      }
    }
    write(kLeft, 24,
          "jitcd on " + view_.node + ": " + seconds_text(seconds_at(end_)) + " until " +
              wall_clock(view_.now_unix - (view_.now - std::min(view_.now, end_))),
          " font-size=\"16\"");
    std::string summary = std::to_string(attempts) + (attempts == 1 ? " start of a compiler" : " starts of a compiler");
    for (const Look& look : kLooks)
      if (counts[look.outcome] > 0)
        summary += ", " + std::to_string(counts[look.outcome]) + " " + std::string(look.words);
    if (view_.dropped > 0) summary += "; " + std::to_string(view_.dropped) + " older spans are not kept";
    write(kLeft, 44, summary, " class=\"d\"");
    y_ = kTop;
  }

  static bool is_answer(const TraceSpan& span) {
    return span.kind == Kind::kAnswered || (span.kind == Kind::kLookUp && span.outcome == "HIT");
  }

  void slots() {
    std::uint32_t lanes = view_.samples.empty() ? 1 : view_.samples.back().slots;
    for (const TraceSpan& span : view_.spans) lanes = std::max(lanes, span.lane);
    background(lanes * kSlotRow);
    for (std::uint32_t lane = 1; lane <= lanes; ++lane)
      label(y_ + (lane - 0.3) * kSlotRow, "slot " + std::to_string(lane));
    for (const TraceSpan& span : view_.spans)
      if (span.kind == Kind::kRunning && span.lane > 0) slot_bar(span);
    y_ += lanes * kSlotRow + kGap;
  }

  void slot_bar(const TraceSpan& span) {
    const double left = x(span.begin), width = std::max(kLeastBar, x(span.end) - left);
    const double top = y_ + (span.lane - 1) * kSlotRow + (kSlotRow - kSlotBar) / 2;
    const Look& look = look_of(span);
    // A white edge between two that touch, where there is room for it.
    const std::string_view edge = width > 4 ? " stroke=\"#fff\" stroke-width=\"0.5\"" : "";
    body_ += "<rect x=\"" + number(left) + "\" y=\"" + number(top) + "\" width=\"" + number(width) + "\" height=\"" +
             number(kSlotBar) + "\" fill=\"" + std::string(look.colour) + "\"" + std::string(edge) + ">" +
             tooltip(span, std::string(look.words) + (span.open ? ", so far" : ", after")) + "</rect>\n";
    const auto room = static_cast<std::size_t>(std::max(0.0, (width - 8) / kCharacter));
    if (room < 4) return;
    const std::string name = printable(span.name.substr(span.name.rfind('/') + 1), true);  // all of it, without one
    write(left + 4, top + kSlotBar * 0.7, columns_of(name) <= room ? name : fitted(name, room, true, Cut::kFront),
          " class=\"n\"");
  }

  // Spans that overlap, each a thin line; those too short to be seen are left out.
  void lines(const char* title, Kind kind, const char* what) {
    std::vector<const TraceSpan*> spans;
    for (const TraceSpan& span : view_.spans)
      if (span.kind == kind && x(span.end) - x(span.begin) >= kLeastBar / 2) spans.push_back(&span);
    if (spans.empty()) return;
    const auto [rows, count] = packed(spans);
    const double pitch = std::min(kLine, kMostLines / static_cast<double>(count));
    const double height = std::max(kAnswerRow, pitch * static_cast<double>(count));
    background(height);
    label(y_ + std::min(height / 2 + 4, 12.0), title);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      const TraceSpan& span = *spans[i];
      const double y = y_ + (static_cast<double>(rows[i]) + 0.5) * pitch;
      const bool cancelled = span.outcome == "CANCELLED";
      body_ += "<line x1=\"" + number(x(span.begin)) + "\" y1=\"" + number(y) + "\" x2=\"" + number(x(span.end)) +
               "\" y2=\"" + number(y) + "\" stroke=\"" + (cancelled ? "#9a9a9a" : "#7a5195") + "\" stroke-width=\"" +
               number(std::max(0.3, pitch * 0.55)) + "\">" + tooltip(span, what) + "</line>\n";
    }
    y_ += height + kGap;
  }

  void answers() {
    const bool any = std::ranges::any_of(view_.spans, is_answer);
    if (!any) return;
    background(kAnswerRow);
    label(y_ + 11, "answers");
    for (const TraceSpan& span : view_.spans) {
      if (!is_answer(span)) continue;
      const Look& look = look_of(span);
      body_ += "<line x1=\"" + number(x(span.end)) + "\" y1=\"" + number(y_ + 1) + "\" x2=\"" + number(x(span.end)) +
               "\" y2=\"" + number(y_ + kAnswerRow - 1) + "\" stroke=\"" + std::string(look.colour) +
               "\" stroke-width=\"1.5\">" + tooltip(span, look.outcome == kOther ? span.outcome : look.words) +
               "</line>\n";
    }
    y_ += kAnswerRow + kGap;
  }

  // A line through (time, value), each value held until the next; `of` gives a sample's value.
  std::string steps(double most, const std::function<std::uint64_t(const TraceSample&)>& of) const {
    const auto y = [&](const TraceSample& sample) {
      return y_ + kMemory * (1 - static_cast<double>(of(sample)) / most);
    };
    // From the last one before the picture begins.
    auto first = std::ranges::upper_bound(view_.samples, begin_, {}, &TraceSample::at);
    if (first != view_.samples.begin()) --first;
    std::string path = "M" + number(x(first->at)) + " " + number(y(*first));
    for (auto sample = std::next(first); sample != view_.samples.end() && sample->at <= end_; ++sample)
      path += "H" + number(x(sample->at)) + "V" + number(y(*sample));
    return path + "H" + number(x(end_));
  }

  void memory() {
    if (view_.samples.empty()) return;
    std::uint64_t most_used = 0, budget = 0;
    for (const TraceSample& sample : view_.samples) {
      most_used = std::max(most_used, sample.memory_bytes);
      budget = std::max(budget, sample.budget_bytes);
    }
    // A budget that is far above the use would press it to the ground: then it is named, not drawn to scale.
    const bool near = static_cast<double>(budget) <= 4.0 * static_cast<double>(most_used);
    const double top = std::max(1.08 * static_cast<double>(near ? std::max(budget, most_used) : most_used), 4096.0);
    background(kMemory);
    memory_ticks(top);
    const auto used = [](const TraceSample& sample) { return sample.memory_bytes; };
    const std::string area = steps(top, used);
    const double left = std::stod(area.substr(1));
    body_ += "<path d=\"" + area + "V" + number(y_ + kMemory) + "H" + number(left) +
             "Z\" fill=\"#009e73\" fill-opacity=\"0.35\"/>\n<path d=\"" + area +
             "\" fill=\"none\" stroke=\"#009e73\" stroke-width=\"1.2\"><title>memory of compiles and spare children, "
             "at most " +
             escaped(bytes_text(most_used)) + "</title></path>\n";
    if (near) {
      body_ += "<path d=\"" + steps(top, [](const TraceSample& sample) { return sample.budget_bytes; }) +
               "\" fill=\"none\" stroke=\"#b00020\" stroke-width=\"1.4\" stroke-dasharray=\"6 4\"><title>budget" +
               "</title></path>\n";
    }
    write(kWidth - kRight - 4, y_ - 6,
          near ? "budget " + bytes_text(view_.samples.back().budget_bytes) + " (dashed), used at most " +
                     bytes_text(most_used)
               : "used at most " + bytes_text(most_used) + "; the budget, " + bytes_text(budget) +
                     ", is beyond the picture",
          " text-anchor=\"end\" class=\"d\"");
    y_ += kMemory;
  }

  void memory_ticks(double top) {
    const double mebi = 1024.0 * 1024.0;
    const bool gibi = top > 4096 * mebi;
    const double unit = gibi ? 1024 * mebi : mebi;
    const double step = tick_step(top / unit, 4, false);
    label(y_ + kMemory + 4, "0");
    for (double value = step; value * unit < top; value += step) {
      const double y = y_ + kMemory * (1 - value * unit / top);
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "%.3g %s", value, gibi ? "GiB" : "MiB");
      label(y + 4, text.data());
      grid_ += "<line x1=\"" + number(kLeft) + "\" y1=\"" + number(y) + "\" x2=\"" + number(kWidth - kRight) +
               "\" y2=\"" + number(y) + "\" class=\"g\"/>\n";
    }
  }

  void axis() {
    const double range = seconds_at(end_);
    const double step = tick_step(range, kTicks, true);
    for (std::size_t i = 0; static_cast<double>(i) * step <= range; ++i) {
      const double seconds = static_cast<double>(i) * step;
      const double at = x(begin_ + static_cast<std::uint64_t>(seconds * 1e6));
      grid_ += "<line x1=\"" + number(at) + "\" y1=\"" + number(kTop) + "\" x2=\"" + number(at) + "\" y2=\"" +
               number(y_ + 4) + "\" class=\"g\"/>\n";
      write(at, y_ + 18, i == 0 ? "0" : seconds_text(seconds), " text-anchor=\"middle\" class=\"d\"");
    }
    y_ += 30;
  }

  void legend() {
    double at = kLeft;
    const auto entry = [&](std::string_view colour, std::string_view words) {
      body_ += "<rect x=\"" + number(at) + "\" y=\"" + number(y_) + "\" width=\"12\" height=\"12\" fill=\"" +
               std::string(colour) + "\"/>\n";
      write(at + 17, y_ + 10, words);
      at += 40 + kCharacter * static_cast<double>(words.size());
    };
    for (const Look& look : kLooks)
      if (seen_.contains(look.outcome)) entry(look.colour, look.words);
    if (std::ranges::any_of(view_.spans, [](const TraceSpan& span) { return span.kind == Kind::kQueued; }))
      entry("#7a5195", "waits or is published");
    entry("#80ceb9", "memory of compiles and spares");
    y_ += 26;
  }

  const TraceView& view_;
  std::uint64_t begin_ = UINT64_MAX, end_ = 0;
  std::string grid_, body_;  // what lies behind, and the rest
  std::set<std::string_view> seen_;
  double y_ = 0;  // where the next section begins
};

}  // namespace

std::string svg_timeline(const TraceView& view) { return Timeline(view).text(); }

}  // namespace jitc::cli
