// Puts entries into the store, whole or not at all, and takes broken ones out.
#pragma once

#include <string>
#include <string_view>

#include "common/digest.h"
#include "common/error.h"
#include "common/owner.h"
#include "daemon/store/directories.h"
#include "daemon/store/file_system.h"

namespace jitc::store {

struct Published {
  std::string path;
  bool is_ours = true;       // false: another writer was faster, its entry verifies
  unsigned quarantined = 0;  // broken entries that were in the way
};

// Write a temporary file, link it to the final name, unlink the temporary name. Whatever fails in between, the final
// name is absent or a whole file that verifies: it comes into being by one link() of a file that is complete.
class Publisher {
 public:
  Publisher(FileSystem& files, Directories& directories);

  common::Result<Published> publish(const common::Digest& key, std::string_view elf, std::string_view tail);
  common::Result<void> sync(const std::string& path);
  // Moves the entry of this key away if it does not verify. Was there one, and is it gone?
  bool quarantine(const common::Digest& key);
  // Moves it away whatever it is. Was there one, and is it gone?
  bool set_aside(const common::Digest& key);

 private:
  common::Result<std::string> write_temp(std::string_view elf, std::string_view tail);
  common::Result<int> open_temp(std::string& path);
  int fill(int fd, std::string_view elf, std::string_view tail);
  int write_all(int fd, std::string_view bytes);
  common::Result<Published> place(const std::string& temp, const common::Digest& key);
  std::unexpected<common::Error> in_the_way(const common::Digest& key, const std::string& path) const;
  int move_away(const std::string& path, const common::Digest& key, std::string& away);
  bool is_good(const common::Digest& key) const;  // the entry
  bool is_good(const std::string& path, const common::Digest& key) const;

  FileSystem& files_;
  Directories& directories_;
  const common::Owner self_;
};

}  // namespace jitc::store
