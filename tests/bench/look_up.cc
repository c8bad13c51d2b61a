#include "tests/bench/look_up.h"

#include <grpcpp/create_channel_posix.h>

#include "common/runtime_dir.h"
#include "tests/bench/measure.h"

namespace jitc::bench {

LookUp::LookUp(const std::string& runtime_dir) {
  auto socket = common::connect_own(runtime_dir + "/" + common::kSocketName);
  if (!socket) give_up(common::to_line(socket.error()));
  stub_ = v1::Compiler::NewStub(grpc::CreateInsecureChannelFromFd("jitcd", socket->release()));
}

bool LookUp::finds(const common::Digest& key) {
  grpc::ClientContext context;
  v1::LookupRequest request;
  request.set_key(key.hex());
  v1::LookupReply reply;
  if (const auto status = stub_->Lookup(&context, request, &reply); !status.ok()) give_up(status.error_message());
  return reply.found();
}

}  // namespace jitc::bench
