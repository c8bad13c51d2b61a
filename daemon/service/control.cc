#include "daemon/service/control.h"

namespace jitc::service {

grpc::ServerUnaryReactor* carry_out_cancel(const Services& services, grpc::CallbackServerContext& context,
                                           const v1::CancelRequest& request, v1::CancelReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &request, &reply, reactor] {
    services.active();
    reply.set_found(services.engine.cancel(request.flight()));
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* carry_out_drain(const Services& services, grpc::CallbackServerContext& context,
                                          v1::DrainReply& reply) {
  auto* reactor = context.DefaultReactor();
  asio::post(services.state, [&services, &reply, reactor] {
    services.active();
    services.draining();
    const DrainView view = services.engine.drain(services.drained);
    reply.set_running(view.running);
    reply.set_queued(view.queued);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace jitc::service
