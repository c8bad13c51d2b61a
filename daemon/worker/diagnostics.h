// Collects what the embedded compiler says, as structured diagnostics and as text.
#pragma once

#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceManager.h>

#include <string>
#include <string_view>

#include "daemon/worker/job.h"

namespace jitc::worker {

class DiagnosticCollector : public clang::DiagnosticConsumer {
 public:
  // For preprocessed text: places are those that its line markers tell, and what is not parsed is refused.
  explicit DiagnosticCollector(bool follows_markers = false) : follows_markers_(follows_markers) {}

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override;

  // Reports `reason` at the place as an error that makes the outcome REFUSED.
  static void refuse(clang::DiagnosticsEngine& engine, clang::SourceLocation place, std::string_view reason);

  // The first refusal; empty: nothing was refused.
  const std::string& refusal() const { return refusal_; }
  const std::string& first_error() const { return first_error_; }
  bool failed() const { return !first_error_.empty(); }
  // Moves diagnostics and text into the answer.
  void move_into(Finished& finished);

 private:
  std::string message_of(const clang::Diagnostic& info);
  void place(const clang::Diagnostic& info, v1::Diagnostic& diagnostic);

  bool follows_markers_;
  google::protobuf::RepeatedPtrField<v1::Diagnostic> diagnostics_;
  std::string log_;
  std::string refusal_;
  std::string first_error_;
};

// The line with a caret under the column (1-based, in bytes); a long line is cut to a window around it.
std::string excerpt_of(std::string_view line, unsigned column);

}  // namespace jitc::worker
