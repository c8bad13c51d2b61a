#include "client/api/recent_requests.h"

#include <cstddef>
#include <string>
#include <utility>

namespace jitc::api {
namespace {

// Of the requests that a context remembers besides the last one, and of their texts together.
constexpr std::size_t kMostRemembered = 15;
constexpr std::size_t kMostRememberedBytes = std::size_t{1} << 20;

// Of all the texts that it keeps.
std::size_t bytes_of(const common::Request& request) {
  std::size_t bytes = request.origin.size() + request.code.size() + request.name.size() + request.compiler.size() +
                      request.abi_tag.size() + request.isa_wish.size();
  for (const std::string& flag : request.flags) bytes += sizeof(std::string) + flag.size();
  for (const common::Header& header : request.headers)
    bytes += sizeof(common::Header) + header.name.size() + header.text.size();
  return bytes;
}

}  // namespace

void RecentRequests::add(common::SharedRequest request) {
  requests_.push_front(std::move(request));
  std::size_t bytes = 0;
  std::size_t kept = 1;
  while (kept < requests_.size() && kept <= kMostRemembered) {
    bytes += bytes_of(*requests_[kept]);
    if (bytes > kMostRememberedBytes) break;
    ++kept;
  }
  requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(kept), requests_.end());
}

}  // namespace jitc::api
