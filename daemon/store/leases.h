// Who compiles what, told between the daemons of one store: a file beside the artifact,
// <store>/v1/<2 hex>/<64 hex digits of the key>.lease, of one line,
//
//   <holder> <beats>\n
//
// `holder` is a temp name (common/owner.h), another for each lease. Who begins a compile makes the file, exclusively;
// while he compiles the number rises; when he is done he removes the file. A lease is a hint and no lock: where none
// can be made or read, one compiles without, and who both compile the same key publish one artifact as ever. It lies
// where the artifact will: on a shared file system that remembers directories, making it is a look at that directory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/digest.h"
#include "common/owner.h"
#include "daemon/store/directories.h"
#include "daemon/store/file_system.h"

namespace jitc::store {

struct Claim {
  enum class Kind {
    kOurs,       // this process holds the lease; `text` is its holder
    kTheirs,     // another does, `text` is what the lease says
    kPublished,  // nobody need compile: the entry is there
    kNone,       // there can be no lease: compile without
  };
  Kind kind = Kind::kNone;
  std::string text;
};

// Safe to use from several threads.
class Leases {
 public:
  Leases(FileSystem& files, Directories& directories);

  // Makes the lease of this key if nobody has it. That of a process of this node that has ended is taken over.
  Claim claim(const common::Digest& key);
  // The same after the lease was removed, if it says `text` still.
  Claim take_over(const common::Digest& key, const std::string& text);
  // Of a lease that is ours. False: it is so no longer, whoever has removed it.
  bool beat(const common::Digest& key, const std::string& holder, std::uint64_t beats);
  void release(const common::Digest& key, const std::string& holder);

  // What the lease in this file says; none when it cannot be read.
  std::optional<std::string> read(const std::string& path);
  // Removes it if it says `text` still. Was it removed?
  bool remove(const std::string& path, const std::string& text);
  static bool is_name(std::string_view file_name);
  static std::optional<common::Owner> holder_of(std::string_view text);

 private:
  std::string path_of(const common::Digest& key) const;
  Claim make(const common::Digest& key);
  int open_new(const common::Digest& key);
  int read(const std::string& path, std::string& text);
  bool has_ended(std::string_view text) const;

  FileSystem& files_;
  Directories& directories_;
  const common::Owner self_;
};

}  // namespace jitc::store
