// Which artifacts have computed what they must on which model of CPU. State thread only.
#pragma once

#include <string>
#include <unordered_set>

#include "common/digest.h"
#include "daemon/service/asio.h"
#include "daemon/service/work.h"

namespace jitc::service {

inline constexpr const char* kPassedName = "passed";  // in the runtime directory

class Passed {
 public:
  // Reads what earlier daemons wrote. `file` empty: nothing is kept.
  Passed(std::string file, std::string cpu);
  bool has(const Product& product) const { return digests_.contains(digest_of(product)); }
  // Written by an I/O thread.
  void add(const Product& product, asio::thread_pool& io);

 private:
  // Of key, bytes and CPU: other bytes under the key have not passed.
  common::Digest digest_of(const Product& product) const;

  std::string file_;
  std::string cpu_;
  std::unordered_set<common::Digest> digests_;
};

}  // namespace jitc::service
