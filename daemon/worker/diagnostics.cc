#include "daemon/worker/diagnostics.h"

#include <clang/Lex/LexDiagnostic.h>
#include <clang/Parse/ParseDiagnostic.h>
#include <llvm/ADT/SmallString.h>

#include <algorithm>

namespace jitc::worker {
namespace {

constexpr std::size_t kMaxExcerptLine = 160;
constexpr std::string_view kRefused = "refused: ";

std::string_view name_of(clang::DiagnosticsEngine::Level level) {
  switch (level) {
    case clang::DiagnosticsEngine::Error:
    case clang::DiagnosticsEngine::Fatal:
      return "error";
    case clang::DiagnosticsEngine::Warning:
      return "warning";
    case clang::DiagnosticsEngine::Ignored:
    case clang::DiagnosticsEngine::Note:
    case clang::DiagnosticsEngine::Remark:
      break;
  }
  return "note";
}

bool is_missing_file(unsigned id) {
  return id == clang::diag::err_pp_file_not_found || id == clang::diag::err_pp_file_not_found_typo_not_fatal ||
         id == clang::diag::err_pp_file_not_found_angled_include_not_fatal;
}

bool is_utf8_tail(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::string text_of(const v1::Diagnostic& diagnostic) {
  std::string text;
  if (diagnostic.line() > 0) {
    text = std::string(kSourceName) + ":" + std::to_string(diagnostic.line()) + ":" +
           std::to_string(diagnostic.column()) + ": ";
  }
  text += diagnostic.severity() + ": " + diagnostic.message() + "\n";
  if (!diagnostic.excerpt().empty()) text += diagnostic.excerpt() + "\n";
  return text;
}

}  // namespace

std::string excerpt_of(std::string_view line, unsigned column) {
  std::size_t caret = std::min<std::size_t>(column > 0 ? column - 1 : 0, line.size());
  if (line.size() > kMaxExcerptLine) {
    std::size_t begin = caret > kMaxExcerptLine / 2 ? caret - kMaxExcerptLine / 2 : 0;
    while (begin > 0 && is_utf8_tail(line[begin])) --begin;
    std::size_t end = std::min(begin + kMaxExcerptLine, line.size());
    while (end < line.size() && is_utf8_tail(line[end])) ++end;
    line = line.substr(begin, end - begin);
    caret -= begin;
  }
  std::string text(line);
  text += '\n';
  for (const char byte : line.substr(0, caret)) {
    if (!is_utf8_tail(byte)) text += byte == '\t' ? '\t' : ' ';
  }
  return text + '^';
}

void DiagnosticCollector::refuse(clang::DiagnosticsEngine& engine, clang::SourceLocation place,
                                 std::string_view reason) {
  const std::string text = std::string(kRefused) + std::string(reason);
  engine.Report(place, engine.getDiagnosticIDs()->getCustomDiagID(clang::DiagnosticIDs::Error, "%0")) << text;
}

std::string DiagnosticCollector::message_of(const clang::Diagnostic& info) {
  if (is_missing_file(info.getID())) {
    refusal_ = refusal_of_include(info.getArgStdStr(0));
    return refusal_;
  }
  // Clang drops its body, and what is not parsed is not inspected.
  if (info.getID() == clang::diag::err_function_definition_not_allowed && follows_markers_) {
    refusal_ = "a function within a function is not compiled; move it out";
    return refusal_;
  }
  llvm::SmallString<256> text;
  info.FormatDiagnostic(text);
  if (text.starts_with(kRefused)) {
    text.erase(text.begin(), text.begin() + kRefused.size());
    if (refusal_.empty()) refusal_ = text.str();
  }
  return std::string(text);
}

void DiagnosticCollector::place(const clang::Diagnostic& info, v1::Diagnostic& diagnostic) {
  if (!info.hasSourceManager() || info.getLocation().isInvalid()) return;
  const clang::SourceManager& sources = info.getSourceManager();
  clang::SourceLocation location = sources.getFileLoc(info.getLocation());
  // A place in a header is said in words; line and column are those of the #include in the source.
  std::string inside;
  while (!sources.isInMainFile(location)) {
    const clang::PresumedLoc where = sources.getPresumedLoc(location, false);
    if (where.isInvalid()) return;
    if (inside.empty()) {
      inside = std::string(where.getFilename()) + ":" + std::to_string(where.getLine()) + ":" +
               std::to_string(where.getColumn()) + ": ";
    }
    const clang::SourceLocation outer = sources.getIncludeLoc(sources.getFileID(location));
    if (outer.isInvalid()) break;
    location = sources.getFileLoc(outer);
  }
  diagnostic.set_message(inside + diagnostic.message());
  if (!sources.isInMainFile(location)) return;
  const auto [file, offset] = sources.getDecomposedLoc(location);
  const unsigned column = sources.getColumnNumber(file, offset);
  diagnostic.set_line(sources.getLineNumber(file, offset));
  if (follows_markers_) {
    const clang::PresumedLoc presumed = sources.getPresumedLoc(location);
    const llvm::StringRef name = presumed.isValid() ? presumed.getFilename() : kSourceName;
    diagnostic.set_line(name == kSourceName && presumed.isValid() ? presumed.getLine() : 0);
    if (name != kSourceName) diagnostic.set_message(name.str() + ": " + diagnostic.message());
  }
  diagnostic.set_column(column);
  const llvm::StringRef text = sources.getBufferData(file);
  const llvm::StringRef line =
      text.substr(offset + 1 - column).take_until([](char byte) { return byte == '\n' || byte == '\r'; });
  diagnostic.set_excerpt(excerpt_of({line.data(), line.size()}, column));
}

void DiagnosticCollector::HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) {
  DiagnosticConsumer::HandleDiagnostic(level, info);
  v1::Diagnostic& diagnostic = *diagnostics_.Add();
  diagnostic.set_severity(std::string(name_of(level)));
  diagnostic.set_message(message_of(info));
  place(info, diagnostic);
  if (level >= clang::DiagnosticsEngine::Error && first_error_.empty()) first_error_ = diagnostic.message();
  log_ += text_of(diagnostic);
}

void DiagnosticCollector::move_into(Finished& finished) {
  *finished.mutable_diagnostics() = std::move(diagnostics_);
  finished.set_log(finished.log() + log_);
}

}  // namespace jitc::worker
