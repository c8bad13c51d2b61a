#include "common/request.h"

#include <algorithm>
#include <array>

#include "common/isa.h"
#include "common/utf8.h"

namespace jitc::common {
namespace {

constexpr std::size_t kMaxFlags = 1000;
constexpr std::size_t kMaxFlagBytes = 4096;
// Of all together: they travel in one datagram to the worker, and gcc hands them on in one variable of its environment,
// which the kernel takes up to 128 KiB.
constexpr std::size_t kMaxFlagsBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHeaders = 1000;
constexpr std::size_t kMaxNameBytes = 1024;

// CRLF and LF are one line end, so that a source keeps its key when a tool rewrites its line ends.
std::string with_unix_line_ends(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r' || i + 1 == text.size() || text[i + 1] != '\n') result.push_back(text[i]);
  return result;
}

void add_text(Hasher& hasher, std::string_view name, std::string_view text) {
  if (text.find("\r\n") == std::string_view::npos) {
    hasher.text(name, text);
  } else {
    hasher.text(name, with_unix_line_ends(text));
  }
}

bool is_switch(std::string_view value) { return value == "0" || value == "1" || value == "auto"; }

bool is_isa_wish(std::string_view wish) {
  return wish == "common" || wish == "native" || std::ranges::find(isa_levels(), wish) != isa_levels().end();
}

// UTF-8, as messages must be, without control characters.
bool is_plain(std::string_view text) {
  for (std::size_t at = 0, length = 0; at < text.size(); at += length) {
    length = utf8_length(text, at);
    const auto c = static_cast<unsigned char>(text[at]);
    if (length == 0 || c < 0x20 || c == 0x7f) return false;
  }
  return true;
}

// As an error names it.
std::string quoted(std::string_view text) { return "'" + valid_utf8(text.substr(0, 80)) + "'"; }

Result<void> check_switch(std::string_view name, const std::string& value) {
  if (is_switch(value)) return {};
  return fail(ErrorKind::kUsage, "'" + value + "' is not a value of this setting", std::string(name),
              "use 0, 1 or auto");
}

Result<void> check_lists(const Request& request) {
  if (request.flags.size() > kMaxFlags)
    return fail(ErrorKind::kUsage, std::to_string(request.flags.size()) + " flags", "flags",
                "at most " + std::to_string(kMaxFlags) + " are taken");
  for (const auto& flag : request.flags)
    if (flag.empty() || flag.size() > kMaxFlagBytes || !is_plain(flag))
      return fail(ErrorKind::kUsage, "empty, too long, with control characters or not UTF-8", "flag " + quoted(flag),
                  "give each flag as one argument");
  std::size_t bytes = 0;
  for (const auto& flag : request.flags) bytes += flag.size();
  if (bytes > kMaxFlagsBytes)
    return fail(ErrorKind::kUsage, std::to_string(bytes) + " bytes of flags", "flags",
                "at most " + std::to_string(kMaxFlagsBytes) + " are taken: #define in the source or in a header");
  if (request.headers.size() > kMaxHeaders)
    return fail(ErrorKind::kUsage, std::to_string(request.headers.size()) + " headers", "headers",
                "at most " + std::to_string(kMaxHeaders) + " travel with a request");
  for (const auto& header : request.headers)
    if (header.name.empty() || header.name.size() > kMaxNameBytes || !is_plain(header.name) ||
        header.name.starts_with('/') || header.name.find("..") != std::string::npos)
      return fail(ErrorKind::kUsage, "not a relative name of a header", "header " + quoted(header.name),
                  "name it as the #include directive spells it, without '..'");
  return {};
}

}  // namespace

Digest request_digest(const Request& request) {
  Hasher hasher("jitc request 1");
  add_text(hasher, "origin", request.origin);
  hasher.list("flags", request.flags.size());
  for (const auto& flag : request.flags) hasher.text("flag", flag);
  hasher.text("compiler", request.compiler).text("abi", request.abi_tag);
  hasher.text("share", request.share).text("cse", request.cse).number("emitter", request.emitter_version);
  hasher.text("isa", request.isa_wish);
  hasher.list("headers", request.headers.size());
  for (const auto& header : request.headers) {
    hasher.text("name", header.name);
    add_text(hasher, "text", header.text);
  }
  hasher.number("exact_flags", request.exact_flags ? 1 : 0);
  return hasher.finish();
}

Digest text_digest(std::string_view text) {
  return text.find("\r\n") == std::string_view::npos ? sha256(text) : sha256(with_unix_line_ends(text));
}

bool fall_back_to_origin(Request& request, const Error& error) {
  if (error.kind != ErrorKind::kInvalidSource || request.code.empty()) return false;
  request.code.clear();
  request.no_cache = true;
  return true;
}

Result<void> check_request(const Request& request) {
  if (auto checked = check_switch("share", request.share); !checked) return checked;
  if (auto checked = check_switch("cse", request.cse); !checked) return checked;
  if (!is_isa_wish(request.isa_wish))
    return fail(ErrorKind::kUsage, "unknown instruction set '" + request.isa_wish + "'", "isa",
                "use common, native or a level such as " + std::string(isa_levels().back()));
  if (!request.isa_level.empty() && !isa_mask_of(request.isa_level))
    return fail(ErrorKind::kUsage, "unknown instruction set level '" + request.isa_level + "'", "isa level",
                "use a level such as " + std::string(isa_levels().back()));
  if (request.compiler.empty() || request.compiler.size() > kMaxFlagBytes || !is_plain(request.compiler))
    return fail(ErrorKind::kUsage, "not a compiler's name or path", "compiler " + quoted(request.compiler),
                "use clang, gcc or a path that the daemon allows");
  if (!is_plain(request.abi_tag))
    return fail(ErrorKind::kUsage, "with control characters or not UTF-8", "ABI tag " + quoted(request.abi_tag),
                "give a tag of plain text");
  return check_lists(request);
}

Digest artifact_key(const Digest& request, const CompilerIdentity& compiler, const Target& target,
                    const std::optional<Digest>& includes) {
  Hasher hasher("jitc artifact 1");
  hasher.digest("request", request);
  hasher.text("compiler", compiler.name).text("identity", compiler.identity);
  hasher.text("triple", target.triple).text("isa", target.isa);
  if (includes) hasher.digest("includes", *includes);
  return hasher.finish();
}

}  // namespace jitc::common
