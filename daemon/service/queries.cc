#include "daemon/service/queries.h"

#include <unistd.h>

#include <chrono>

#include "common/files.h"
#include "common/identity.h"
#include "common/utf8.h"

namespace jitc::service {

grpc::ServerUnaryReactor* answer_hello(const Services& services, grpc::CallbackServerContext& context,
                                       const v1::HelloRequest& request, v1::HelloReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &request, &reply, reactor] {
    services.active();
    const auto identity = services.identity.get();
    auto answer = hello(request, {*identity, services.offered, services.engine.limits().slots, services.engine.budget(),
                                  services.figures(), services.enforcement(), services.engine.draining(),
                                  services.engine.cpu_seconds(), compiler_environment()});
    if (!answer) return reactor->Finish(to_status(answer.error()));
    reply = std::move(*answer);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* answer_lookup(const Services& services, grpc::CallbackServerContext& context,
                                        const v1::LookupRequest& request, v1::LookupReply& reply) {
  auto* reactor = context.DefaultReactor();
  const auto key = common::Digest::from_hex(request.key());
  if (!key) {
    reactor->Finish(to_status({common::ErrorKind::kUsage, "a key has 64 hexadecimal digits", request.key()}));
    return reactor;
  }
  asio::post(services.io, [&services, &reply, reactor, key = *key] {
    const auto product = services.artifacts.look_up(key);
    reply.set_found(product != nullptr);
    if (product) *reply.mutable_artifact() = to_wire(Delivery{product, true, false, {}});
    asio::post(services.state, [&services, key, hit = product != nullptr] { services.looked_up(key, hit); });
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* answer_jobs(const Services& services, grpc::CallbackServerContext& context,
                                      v1::JobsReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &reply, reactor] {
    services.active();
    for (const auto& job : services.engine.jobs()) *reply.add_jobs() = to_wire(job);
    reply.set_draining(services.engine.draining());
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* answer_stats(const Services& services, grpc::CallbackServerContext& context,
                                       v1::StatsReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &reply, reactor] {
    services.active();
    for (const auto& [name, value] : services.counters()) (*reply.mutable_counters())[name] = value;
    for (const auto& [name, value] : services.gauges()) (*reply.mutable_gauges())[name] = value;
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

// Copied on the state thread, made into a message beside it.
grpc::ServerUnaryReactor* answer_trace(const Services& services, grpc::CallbackServerContext& context,
                                       v1::TraceReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &reply, reactor] {
    services.active();
    auto snapshot = services.engine.trace().snapshot(std::chrono::steady_clock::now());
    const auto wall = std::chrono::system_clock::now().time_since_epoch();
    asio::post(services.io, [&reply, reactor, snapshot = std::move(snapshot), wall] {
      reply = to_wire(snapshot);
      reply.set_node(common::valid_utf8(common::host_name()));
      reply.set_pid(getpid());
      reply.set_version(common::build_version());
      reply.set_now_unix_us(
          static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(wall).count()));
      reactor->Finish(grpc::Status::OK);
    });
  });
  return reactor;
}

}  // namespace jitc::service
