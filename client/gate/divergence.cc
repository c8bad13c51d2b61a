#include "client/gate/divergence.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace jitc::gate {
namespace {

using common::Digest;
using common::Error;
using common::ErrorKind;

constexpr std::size_t kShown = 120;
constexpr std::size_t kContext = 40;  // shown before the first differing byte of a long line

std::string_view line_at(std::string_view text, std::size_t at) {
  const std::size_t newline = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
  const std::size_t end = std::min(text.find('\n', at), text.size());
  return begin < end ? text.substr(begin, end - begin) : std::string_view();
}

// The line around column `column`, as it is shown: generated lines may be megabytes long.
std::string shown(std::string_view line, std::size_t column) {
  const std::size_t from = column > kShown - kContext ? std::min(column - kContext, line.size()) : 0;
  std::string text(line.substr(from, kShown));
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return (from ? "'..." : "'") + text + (from + kShown < line.size() ? "...'" : "'");
}

std::string quoted(std::string_view text) { return shown(text, 0); }

Error divergent(std::string message, std::string thing) {
  return {ErrorKind::kDivergent, std::move(message), std::move(thing),
          "every rank must make the same calls with the same source, flags and constants, in the same order"};
}

std::optional<Error> out_of_turn(const Call& mine, const Call& root) {
  const std::string thing = "call " + std::to_string(mine.sequence) + " ('" + mine.request->name + "')";
  if (mine.sequence != root.sequence)
    return divergent("this is its call " + std::to_string(mine.sequence) + ", rank 0 is at call " +
                         std::to_string(root.sequence) + ": a rank skipped a call",
                     thing);
  const Digest none;
  const Digest& my_digest = mine.request.digest();
  const Digest& root_digest = root.request.digest();
  if (my_digest == root_digest) return std::nullopt;
  if (mine.previous != none && mine.previous == root_digest)
    return divergent("its call before this one asked for what rank 0 asks now: it skipped a call", thing);
  if (root.previous != none && root.previous == my_digest)
    return divergent("it asks for what rank 0 asked in its call before this one: rank 0 skipped a call", thing);
  return std::nullopt;
}

std::optional<Error> differing_settings(const Call& mine_call, const Call& root_call) {
  const common::Request& mine = *mine_call.request;
  const common::Request& root = *root_call.request;
  const auto differ = [](const char* what, const std::string& here, const std::string& there) -> std::optional<Error> {
    if (here == there) return std::nullopt;
    return divergent(std::string(what) + " " + quoted(here) + " here, " + quoted(there) + " on rank 0", what);
  };
  const auto joined = [](const std::vector<std::string>& flags) {
    std::string text;
    for (const std::string& flag : flags) text += (text.empty() ? "" : " ") + flag;
    return text;
  };
  if (auto error = differ("flags", joined(mine.flags), joined(root.flags))) return error;
  if (mine.flags != root.flags) return divergent("the flags are split in another way than on rank 0", "flags");
  if (auto error = differ("compiler", mine.compiler, root.compiler)) return error;
  if (auto error = differ("ABI tag", mine.abi_tag, root.abi_tag)) return error;
  if (auto error = differ("instruction set", mine.isa_wish, root.isa_wish)) return error;
  if (auto error = differ("share", mine.share, root.share)) return error;
  if (auto error = differ("cse", mine.cse, root.cse)) return error;
  if (mine.emitter_version != root.emitter_version || mine.exact_flags != root.exact_flags)
    return divergent("another emitter version or flag policy than on rank 0", "request");
  const auto same_header = [](const common::Header& a, const common::Header& b) {
    return a.name == b.name && a.text == b.text;
  };
  if (const auto [here, there] = std::ranges::mismatch(mine.headers, root.headers, same_header);
      here != mine.headers.end() || there != root.headers.end()) {
    const bool is_here = here != mine.headers.end();
    if (is_here && there != root.headers.end() && here->name == there->name)
      return divergent(first_difference(here->text, there->text), "header " + here->name);
    return divergent("other headers than on rank 0", "header " + (is_here ? here->name : there->name));
  }
  return std::nullopt;
}

}  // namespace

std::string first_difference(std::string_view mine, std::string_view root) {
  const auto [here, there] = std::ranges::mismatch(mine, root);
  const auto at = static_cast<std::size_t>(here - mine.begin());
  const auto line = 1 + std::ranges::count(mine.substr(0, at), '\n');
  const std::string_view my_line = line_at(mine, at);
  const std::string_view root_line = line_at(root, at);
  const std::size_t newline = at == 0 ? std::string_view::npos : mine.rfind('\n', at - 1);
  const std::size_t column = at - (newline == std::string_view::npos ? 0 : newline + 1);
  return "line " + std::to_string(line) + ": " + shown(my_line, column) + " here, " + shown(root_line, column) +
         " on rank 0";
}

std::optional<Error> difference(const Call& mine, const Call& root) {
  if (auto error = out_of_turn(mine, root)) return error;
  if (mine.request->origin != root.request->origin && mine.request.digest() != root.request.digest())
    return divergent("the source differs, first at " + first_difference(mine.request->origin, root.request->origin),
                     mine.request->name);
  if (auto error = differing_settings(mine, root)) return error;
  if (mine.manifest != root.manifest)
    return divergent("the source is the same, its constants manifest differs, first at " +
                         first_difference(mine.manifest, root.manifest),
                     mine.request->name);
  return std::nullopt;
}

bool is_adoptable(const Call& mine, const Call& root) {
  return mine.request->name == root.request->name && !out_of_turn(mine, root) && !differing_settings(mine, root);
}

std::optional<Error> difference(const std::vector<Call>& mine, const std::vector<Call>& root) {
  for (std::size_t i = 0; i < std::min(mine.size(), root.size()); ++i)
    if (auto error = difference(mine[i], root[i])) return error;
  if (mine.size() == root.size()) return std::nullopt;
  return divergent("it asks for " + std::to_string(mine.size()) + " modules, rank 0 for " + std::to_string(root.size()),
                   "call " + std::to_string(mine.front().sequence));
}

bool is_adoptable(const std::vector<Call>& mine, const std::vector<Call>& root) {
  return std::ranges::equal(mine, root, [](const Call& a, const Call& b) { return is_adoptable(a, b); });
}

}  // namespace jitc::gate
