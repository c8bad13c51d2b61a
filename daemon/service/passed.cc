#include "daemon/service/passed.h"

#include <fcntl.h>

#include <sstream>
#include <utility>

#include "common/files.h"

namespace jitc::service {
namespace {

constexpr std::size_t kMost = 100'000;  // then it begins anew: what has passed is checked once more

// One line by one write: the writes of several threads do not mix. A file that cannot be written costs a check later.
void write_line(const std::string& file, const std::string& line, bool anew) {
  const common::Fd fd(
      open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (anew ? O_TRUNC : 0), 0600));
  if (fd) static_cast<void>(common::write_all(fd.get(), line, file));
}

}  // namespace

Passed::Passed(std::string file, std::string cpu) : file_(std::move(file)), cpu_(std::move(cpu)) {
  const auto text = file_.empty() ? std::string() : common::read_file(file_).value_or("");
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && digests_.size() < kMost;) {
    if (const auto digest = common::Digest::from_hex(line)) digests_.insert(*digest);
  }
}

common::Digest Passed::digest_of(const Product& product) const {
  common::Hasher hasher("jitc passed 1");
  return hasher.digest("key", product.key).digest("file", product.digest).text("cpu", cpu_).finish();
}

void Passed::add(const Product& product, asio::thread_pool& io) {
  const bool is_full = digests_.size() >= kMost;
  if (is_full) digests_.clear();
  const common::Digest digest = digest_of(product);
  if (!digests_.insert(digest).second || file_.empty()) return;
  asio::post(io, [file = file_, line = digest.hex() + "\n", is_full] { write_line(file, line, is_full); });
}

}  // namespace jitc::service
