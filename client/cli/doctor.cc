// jitc doctor: does everything that jitc stands on work here? A line for each check, with a remedy where it does not.
#include "client/cli/doctor.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "client/cli/progress.h"
#include "client/cli/watch.h"

namespace jitc::cli {
namespace {

constexpr int kFound = 10;                         // exit code
constexpr std::chrono::milliseconds kMoment{300};  // nothing is said of what takes less

struct Options {
  bool json = false;
  SettingFlags settings;
};

// Before the settings can be read: they may lie where nobody answers.
double first_patience() {
  const char* text = std::getenv("JITC_TIMEOUT");
  const auto seconds = common::parse_seconds(text == nullptr ? "" : text);
  return seconds && *seconds > 0 ? *seconds : kLookSeconds;
}

// Looks at one area after the other, and shows each as soon as it was looked at.
class Doctor {
 public:
  Doctor(const Options& options, const Screen& screen)
      : json_(options.json),
        screen_(screen),
        progress_(ProgressDisplay::mode_of("auto") == ProgressDisplay::Mode::kTerminal),
        patience_(first_patience()) {}

  void be_patient(double seconds) { patience_ = seconds > 0 ? seconds : kLookSeconds; }

  void look(const std::function<void(const Teller&)>& area, double patience_factor = 1) {
    if (interrupted_) return;
    const std::size_t before = findings_.size();
    const auto begin = std::chrono::steady_clock::now();
    interrupted_ = !look_within(patience_ * patience_factor, area, findings_, [&](const std::string& step) {
      if (progress_ && std::chrono::steady_clock::now() - begin > kMoment)
        std::fprintf(stderr, "\r\033[Kjitc: looking at %s", step.c_str());
    });
    if (progress_) std::fputs("\r\033[K", stderr);
    for (std::size_t i = before; i < findings_.size() && !json_; ++i)
      std::fputs(finding_text(findings_[i], screen_).c_str(), stdout);
    std::fflush(stdout);
  }
  bool has_failed(const std::string& check) const {
    for (const auto& finding : findings_)
      if (finding.check == check && finding.verdict == Verdict::kFail) return true;
    return false;
  }
  int end() const {
    if (interrupted_) return report(common::fail(common::ErrorKind::kCancelled, "interrupted").error());
    std::fputs(json_ ? (findings_json(findings_) + "\n").c_str() : summary_text(findings_, screen_).c_str(), stdout);
    return verdict_of(findings_) == Verdict::kFail ? kFound : 0;
  }

 private:
  const bool json_;
  const Screen screen_;
  const bool progress_;
  double patience_;
  std::vector<Finding> findings_;
  bool interrupted_ = false;
};

// What needs the settings.
void look_at_places(const Context& context, Doctor& doctor) {
  const bool shared = context.settings.flag("store_allow_shared");
  const auto own = shared ? common::Trust::kEverybody : common::Trust::kOwn;
  const auto site = shared ? common::Trust::kEverybody : common::Trust::kOwner;
  for (const auto& path : context.settings.list("store_readonly"))
    doctor.look([&](const Teller& tell) { examine_layer({path, site, /*is_read_only=*/true}, tell); });
  doctor.look([&](const Teller& tell) { examine_store(context, {context.settings.text("store"), own}, tell); });
  if (const auto path = context.settings.text("stage_dir"); !path.empty())
    doctor.look([&](const Teller& tell) { examine_stage_directory(path, tell); });
  doctor.look([&](const Teller& tell) { examine_runtime_directory(context, tell); });
  // Each question to a daemon has the whole patience; there are a handful of them.
  doctor.look([&](const Teller& tell) { examine_daemon(context, tell); }, kServiceQuestions);
  doctor.look([&](const Teller& tell) { examine_service(context, tell); }, kServiceQuestions);
}

int run(const Options& options) {
  watch_interrupts();
  Doctor doctor(options, {.utf8 = locale_is_utf8(), .colours = stdout_takes_colours()});
  doctor.look([&](const Teller& tell) { examine_settings(options.settings, tell); });
  if (!doctor.has_failed("settings")) {
    // What they were read from answered just now.
    const auto context = Context::load(options.settings);
    if (!context) return report(context.error());
    doctor.be_patient(context->settings.seconds("timeout"));
    look_at_places(*context, doctor);
  }
  doctor.look(examine_memory_files);
  doctor.look(examine_ulimits);
  doctor.look(examine_mpi);
  doctor.look(examine_petsc);
  return doctor.end();
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  auto* doctor = app.add_subcommand("doctor", "does what jitc needs work here? What was found, and what to do");
  doctor->add_flag("--json", options->json, "one JSON object");
  options->settings.add(*doctor, {"runtime_dir", "store"});
  doctor->footer(common::help_footer(
      "Each check is ok, warn (it works, but) or fail. What is written lies in a directory of its own inside the "
      "store,\n"
      "and a daemon that is started for it has one among the temporary files; both go at the end. A file system or "
      "program\nthat does not answer fails after JITC_TIMEOUT (30s). Without right settings only what needs none is "
      "looked at.\n"
      "Exit codes: 0 no check failed, 10 one did, 2 wrong usage, 9 interrupted.",
      {"jitc doctor", "jitc doctor --json", "jitc doctor --store other"}));
  doctor->callback([options, &action] { action = [options] { return run(*options); }; });
}

}  // namespace jitc::cli
