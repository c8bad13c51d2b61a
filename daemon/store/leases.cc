#include "daemon/store/leases.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "common/store_reader.h"

namespace jitc::store {
namespace {

using common::Digest;

constexpr std::string_view kSuffix = ".lease";
constexpr int kTries = 4;                            // of what can only go wrong again when others interfere each time
constexpr std::size_t kLongestText = 1024;           // what is longer is no lease
constexpr int kOpenFlags = O_NOFOLLOW | O_NONBLOCK;  // whatever lies there, it is not waited for

std::string text_of(const std::string& holder, std::uint64_t beats) {
  return holder + ' ' + std::to_string(beats) + '\n';
}

}  // namespace

Leases::Leases(FileSystem& files, Directories& directories)
    : files_(files), directories_(directories), self_(common::Owner::this_process()) {}

std::string Leases::path_of(const Digest& key) const {
  return directories_.shard(key) + "/" + key.hex() + std::string(kSuffix);
}

bool Leases::is_name(std::string_view file_name) {
  return file_name.ends_with(kSuffix) && Digest::from_hex(file_name.substr(0, file_name.size() - kSuffix.size()));
}

Claim Leases::claim(const Digest& key) {
  if (!directories_.check_publish(key)) return {};
  const std::string path = path_of(key);
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Claim claim = make(key);
    if (claim.kind == Claim::Kind::kNone) return claim;
    // It may have been published after this process has looked for it and before the lease went.
    FileInfo entry;
    if (files_.status(common::artifact_path(directories_.store(), key), entry) == 0) {
      if (claim.kind == Claim::Kind::kOurs) release(key, claim.text);
      return {Claim::Kind::kPublished, {}};
    }
    if (claim.kind == Claim::Kind::kOurs) return claim;
    const int error = read(path, claim.text);
    if (error == 0 && !has_ended(claim.text)) return claim;
    if (error == 0) {
      remove(path, claim.text);
    } else if (error != -ENOENT && error != -ESTALE && error != -EINTR) {
      break;
    }
  }
  return {};
}

Claim Leases::take_over(const Digest& key, const std::string& text) {
  if (directories_.check_publish(key)) remove(path_of(key), text);
  return claim(key);
}

Claim Leases::make(const Digest& key) {
  const int fd = open_new(key);
  if (fd == -EEXIST) return {Claim::Kind::kTheirs, {}};
  if (fd < 0) return {};
  std::string holder = common::temp_name(self_);
  const std::string text = text_of(holder, 0);
  const bool is_open_to_others = files_.fchmod(fd, directories_.file_mode()) == 0;
  const bool is_written = is_open_to_others && files_.write(fd, text) == static_cast<ssize_t>(text.size());
  const bool is_closed = files_.close(fd) == 0;
  if (is_written && is_closed) return {Claim::Kind::kOurs, std::move(holder)};
  files_.unlink(path_of(key));
  return {};
}

int Leases::open_new(const Digest& key) {
  const auto open = [&] {
    return files_.open(path_of(key), O_WRONLY | O_CREAT | O_EXCL | kOpenFlags, directories_.file_mode());
  };
  const int fd = open();
  if (fd != -ENOENT) return fd;
  return directories_.make() && directories_.make_shard(key) ? open() : fd;
}

// Through one descriptor: what is written to is what was read, whatever has the name by then.
bool Leases::beat(const Digest& key, const std::string& holder, std::uint64_t beats) {
  if (!directories_.check_publish(key)) return false;
  const int fd = files_.open(path_of(key), O_RDWR | kOpenFlags, 0);
  if (fd < 0) return fd != -ENOENT;
  std::string text;
  const bool is_ours = files_.read(fd, text, kLongestText) >= 0 && text.starts_with(holder + ' ');
  if (is_ours) files_.write(fd, text_of(holder, beats));
  files_.close(fd);
  return is_ours;
}

// Between the look and the removal another may take it over, after a silence of ours: then his goes, and somebody may
// compile once more.
void Leases::release(const Digest& key, const std::string& holder) {
  if (!directories_.check_publish(key)) return;
  std::string text;
  if (read(path_of(key), text) == 0 && text.starts_with(holder + ' ')) files_.unlink(path_of(key));
}

// Of two who want to remove the same lease, the slower one may move what the faster one has made since: it looks at
// what it has moved, and gives it back.
bool Leases::remove(const std::string& path, const std::string& text) {
  const std::string away = directories_.temps() + "/" + common::temp_name(self_);
  if (files_.rename(path, away) != 0) return false;
  std::string moved;
  const bool is_it = read(away, moved) == 0 && moved == text;
  if (!is_it) files_.link_or_rename(away, path);
  files_.unlink(away);
  return is_it;
}

int Leases::read(const std::string& path, std::string& text) {
  const int fd = files_.open(path, O_RDONLY | kOpenFlags, 0);
  if (fd < 0) return fd;
  const auto error = static_cast<int>(files_.read(fd, text, kLongestText));
  files_.close(fd);
  return error < 0 ? error : 0;
}

std::optional<std::string> Leases::read(const std::string& path) {
  std::string text;
  return read(path, text) == 0 ? std::optional(std::move(text)) : std::nullopt;
}

std::optional<common::Owner> Leases::holder_of(std::string_view text) {
  return common::owner_of(text.substr(0, text.find(' ')));
}

// Only where a process id means something: another boot of a node of this name may be another node.
bool Leases::has_ended(std::string_view text) const {
  const auto holder = holder_of(text);
  return holder && holder->boot == self_.boot && common::life_of(*holder, self_) == common::Life::kDead;
}

}  // namespace jitc::store
