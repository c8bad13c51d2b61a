// Findings of `jitc doctor`, for people and for programs. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cli/terminal_text.h"

namespace jitc::cli {

enum class Verdict : std::uint8_t { kOk, kWarn, kFail };
const char* name_of(Verdict verdict);

struct Finding {
  std::string check;  // "store.links"
  Verdict verdict = Verdict::kOk;
  std::string found;
  std::string remedy;  // empty where it is ok
};

// The worst; kOk of none.
Verdict verdict_of(const std::vector<Finding>& findings);

std::string finding_text(const Finding& finding, const Screen& screen);
// "23 ok, 1 warning, no failure", and what to do.
std::string summary_text(const std::vector<Finding>& findings, const Screen& screen);
// One JSON object: verdict, ok, warn, fail (numbers), checks.
std::string findings_json(const std::vector<Finding>& findings);

// Between processes.
std::string finding_message(const Finding& finding);
Finding finding_of(const std::string& message);

}  // namespace jitc::cli
