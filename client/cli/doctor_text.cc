#include "client/cli/doctor_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "client/cli/json_text.h"

namespace jitc::cli {
namespace {

constexpr std::size_t kVerdictColumns = 6, kCheckColumns = 22;

std::string coloured(Verdict verdict, const std::string& text, bool colours) {
  if (!colours) return text;
  const char* colour = verdict == Verdict::kOk ? "32" : verdict == Verdict::kWarn ? "33" : "31";
  return std::string("\033[") + colour + "m" + text + "\033[0m";
}

nlohmann::ordered_json object_of(const Finding& finding) {
  return {{"check", finding.check},
          {"verdict", name_of(finding.verdict)},
          {"found", finding.found},
          {"remedy", finding.remedy}};
}

std::size_t count_of(const std::vector<Finding>& findings, Verdict verdict) {
  return static_cast<std::size_t>(std::ranges::count(findings, verdict, &Finding::verdict));
}

}  // namespace

const char* name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kWarn:
      return "warn";
    case Verdict::kFail:
      break;
  }
  return "fail";
}

Verdict verdict_of(const std::vector<Finding>& findings) {
  Verdict worst = Verdict::kOk;
  for (const auto& finding : findings) worst = std::max(worst, finding.verdict);
  return worst;
}

std::string finding_text(const Finding& finding, const Screen& screen) {
  const std::string verdict = fitted(name_of(finding.verdict), kVerdictColumns, screen.utf8);
  std::string check = finding.check;
  check.resize(std::max(check.size() + 1, kCheckColumns), ' ');
  std::string text = coloured(finding.verdict, verdict, screen.colours) + check + printable(finding.found, screen.utf8);
  if (!finding.remedy.empty())
    text += "\n" + std::string(kVerdictColumns + kCheckColumns, ' ') + "-> " + printable(finding.remedy, screen.utf8);
  return text + "\n";
}

std::string summary_text(const std::vector<Finding>& findings, const Screen& screen) {
  const Verdict verdict = verdict_of(findings);
  const auto number = [&](Verdict one, const char* word) {
    const auto count = count_of(findings, one);
    return std::to_string(count) + " " + word + (count == 1 ? "" : "s");
  };
  const char* what = verdict == Verdict::kOk     ? "jitc works here"
                     : verdict == Verdict::kWarn ? "jitc works here, with what the warnings say"
                                                 : "mend the failures first";
  return coloured(verdict, what, screen.colours) + ": " + std::to_string(count_of(findings, Verdict::kOk)) + " ok, " +
         number(Verdict::kWarn, "warning") + ", " + number(Verdict::kFail, "failure") + "\n";
}

std::string findings_json(const std::vector<Finding>& findings) {
  nlohmann::ordered_json object = {{"verdict", name_of(verdict_of(findings))},
                                   {"ok", count_of(findings, Verdict::kOk)},
                                   {"warn", count_of(findings, Verdict::kWarn)},
                                   {"fail", count_of(findings, Verdict::kFail)},
                                   {"checks", nlohmann::ordered_json::array()}};
  for (const auto& finding : findings) object["checks"].push_back(object_of(finding));
  return one_line(object);
}

std::string finding_message(const Finding& finding) { return one_line(object_of(finding)); }

Finding finding_of(const std::string& message) {
  const auto object = nlohmann::json::parse(message);
  Finding finding{object["check"], Verdict::kFail, object["found"], object["remedy"]};
  for (const Verdict verdict : {Verdict::kOk, Verdict::kWarn})
    if (object["verdict"] == name_of(verdict)) finding.verdict = verdict;
  return finding;
}

}  // namespace jitc::cli
