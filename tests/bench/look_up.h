// The daemon's look-up by RPC: the key is sent, the path answered.
#pragma once

#include <memory>
#include <string>

#include "common/digest.h"
#include "jitc/v1/compiler.grpc.pb.h"

namespace jitc::bench {

class LookUp {
 public:
  explicit LookUp(const std::string& runtime_dir);
  // Is it in the store? Ends the bench when nobody answers.
  bool finds(const common::Digest& key);

 private:
  std::unique_ptr<v1::Compiler::Stub> stub_;
};

}  // namespace jitc::bench
