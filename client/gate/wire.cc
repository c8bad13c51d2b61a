#include "client/gate/wire.h"

#include <bit>
#include <cstring>
#include <type_traits>

namespace jitc::gate {
namespace {

static_assert(std::is_trivially_copyable_v<Beat>);

class Writer {
 public:
  void number(std::uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void text(std::string_view value) {
    number(value.size());
    out_ += value;
  }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// Reads past the end give zeros and empty texts, and make the whole unreadable.
class Reader {
 public:
  explicit Reader(std::string_view in) : in_(in) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    const std::string_view bytes = take(sizeof value);
    if (is_good_) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string text() { return std::string(take(number())); }
  bool is_good() const { return is_good_; }
  bool is_at_end() const { return in_.empty(); }

 private:
  std::string_view take(std::uint64_t length) {
    if (!is_good_ || length > in_.size()) {
      is_good_ = false;
      return {};
    }
    const std::string_view bytes = in_.substr(0, length);
    in_.remove_prefix(length);
    return bytes;
  }

  std::string_view in_;
  bool is_good_ = true;
};

}  // namespace

std::string encode(const Beat& beat) { return std::string(reinterpret_cast<const char*>(&beat), sizeof beat); }

Beat decode_beat(std::string_view bytes) {
  Beat beat;
  std::memcpy(static_cast<void*>(&beat), bytes.data(), sizeof beat);
  return beat;
}

std::string encode(const Call& call) {
  const common::Request& request = *call.request;
  Writer out;
  out.number(call.sequence);
  out.text({reinterpret_cast<const char*>(call.previous.bytes.data()), call.previous.bytes.size()});
  out.text(call.manifest);
  out.text(request.origin);
  out.number(request.flags.size());
  for (const std::string& flag : request.flags) out.text(flag);
  out.text(request.compiler);
  out.text(request.abi_tag);
  out.text(request.share);
  out.text(request.cse);
  out.number(request.emitter_version);
  out.text(request.isa_wish);
  out.number(request.headers.size());
  for (const common::Header& header : request.headers) {
    out.text(header.name);
    out.text(header.text);
  }
  out.number(request.exact_flags);
  out.text(request.name);
  out.text(request.job);
  return out.take();
}

common::Result<Call> decode_call(std::string_view bytes) {
  Reader in(bytes);
  common::Request request;
  const std::uint64_t sequence = in.number();
  common::Digest previous;
  if (const std::string digest = in.text(); digest.size() == previous.bytes.size())
    std::memcpy(previous.bytes.data(), digest.data(), digest.size());
  std::string manifest = in.text();
  request.origin = in.text();
  for (std::uint64_t left = in.number(); left > 0 && in.is_good(); --left) request.flags.push_back(in.text());
  request.compiler = in.text();
  request.abi_tag = in.text();
  request.share = in.text();
  request.cse = in.text();
  request.emitter_version = static_cast<std::uint32_t>(in.number());
  request.isa_wish = in.text();
  for (std::uint64_t left = in.number(); left > 0 && in.is_good(); --left) {
    std::string name = in.text();
    request.headers.push_back({std::move(name), in.text()});
  }
  request.exact_flags = in.number() != 0;
  request.name = in.text();
  request.job = in.text();
  if (!in.is_good() || !in.is_at_end())
    return common::fail(common::ErrorKind::kInternal,
                        "the root's call cannot be read: " + std::to_string(bytes.size()) + " bytes", "call of rank 0",
                        "use the same libjitc on all ranks");
  return Call{sequence, previous, std::move(request), std::move(manifest)};
}

std::string encode(const std::vector<Call>& calls) {
  Writer out;
  for (const Call& call : calls) out.text(encode(call));
  return out.take();
}

common::Result<std::vector<Call>> decode_calls(std::string_view bytes) {
  std::vector<Call> calls;
  for (Reader in(bytes); !in.is_at_end();) {
    common::Result<Call> call = decode_call(in.text());
    if (!call) return std::unexpected(std::move(call.error()));
    calls.push_back(std::move(*call));
  }
  return calls;
}

std::string encode(const common::Error& error) {
  Writer out;
  out.number(static_cast<std::uint64_t>(error.kind));
  for (const std::string* text : {&error.message, &error.thing, &error.remedy, &error.log, &error.capsule})
    out.text(*text);
  out.number(error.diagnostics.size());
  for (const common::Diagnostic& diagnostic : error.diagnostics) {
    out.text(diagnostic.severity);
    out.number(diagnostic.line);
    out.number(diagnostic.column);
    out.text(diagnostic.message);
    out.text(diagnostic.excerpt);
  }
  out.number(error.rungs.size());
  for (const std::string& rung : error.rungs) out.text(rung);
  out.number(error.needed_bytes);
  out.number(error.budget_bytes);
  out.number(error.tries);
  out.number(std::bit_cast<std::uint64_t>(error.retry_after_seconds));
  return out.take();
}

common::Error decode_error(std::string_view bytes) {
  Reader in(bytes);
  common::Error error;
  error.kind = static_cast<common::ErrorKind>(in.number());
  for (std::string* text : {&error.message, &error.thing, &error.remedy, &error.log, &error.capsule}) *text = in.text();
  for (std::uint64_t left = in.number(); left > 0 && in.is_good(); --left) {
    common::Diagnostic& diagnostic = error.diagnostics.emplace_back();
    diagnostic.severity = in.text();
    diagnostic.line = static_cast<std::uint32_t>(in.number());
    diagnostic.column = static_cast<std::uint32_t>(in.number());
    diagnostic.message = in.text();
    diagnostic.excerpt = in.text();
  }
  for (std::uint64_t left = in.number(); left > 0 && in.is_good(); --left) error.rungs.push_back(in.text());
  error.needed_bytes = in.number();
  error.budget_bytes = in.number();
  error.tries = static_cast<std::uint32_t>(in.number());
  error.retry_after_seconds = std::bit_cast<double>(in.number());
  if (in.is_good() && in.is_at_end()) return error;
  error = {};
  error.message = "a rank's error arrived and cannot be read";
  return error;
}

}  // namespace jitc::gate
