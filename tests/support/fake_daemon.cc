#include "tests/support/fake_daemon.h"

#include <fcntl.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "common/artifact.h"
#include "common/digest.h"
#include "common/runtime_dir.h"

namespace jitc::testing {

class FakeDaemon::Service final : public v1::Compiler::Service {
 public:
  explicit Service(FakeDaemon& daemon) : daemon_(daemon) {}

  grpc::Status Hello(grpc::ServerContext*, const v1::HelloRequest*, v1::HelloReply* reply) override {
    ++daemon_.hellos_;
    reply->mutable_protocol()->set_oldest(1);
    reply->mutable_protocol()->set_newest(1);
    reply->set_version("fake");
    reply->set_pid(::getpid());
    if (daemon_.script_.hello) daemon_.script_.hello(*reply);
    return grpc::Status::OK;
  }

  grpc::Status Compile(grpc::ServerContext*, const v1::CompileRequest* request, Events* events) override {
    ++daemon_.compiles_;
    return daemon_.script_.compile(*request, *events);
  }

  grpc::Status Stats(grpc::ServerContext*, const v1::StatsRequest*, v1::StatsReply* reply) override {
    for (const auto& [name, value] : daemon_.script_.counters) (*reply->mutable_counters())[name] = value;
    return grpc::Status::OK;
  }

 private:
  FakeDaemon& daemon_;
};

FakeDaemon::FakeDaemon(std::string socket_path, Script script)
    : socket_path_(std::move(socket_path)), script_(std::move(script)), service_(std::make_unique<Service>(*this)) {
  grpc::ServerBuilder builder;
  builder.RegisterService(service_.get());
  builder.SetMaxReceiveMessageSize(-1);
  server_ = builder.BuildAndStart();

  ::unlink(socket_path_.c_str());
  listener_ = common::Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  stop_ = common::Fd(::eventfd(0, EFD_CLOEXEC));
  const auto address = common::socket_address(socket_path_);
  if (!address || ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0 ||
      ::listen(listener_.get(), 128) != 0)
    std::abort();
  acceptor_ = std::thread([this] { accept_all(); });
}

FakeDaemon::~FakeDaemon() {
  const std::uint64_t one = 1;
  if (::write(stop_.get(), &one, sizeof one) != sizeof one) std::abort();
  acceptor_.join();
  listener_.reset();
  cut();
  server_->Shutdown(std::chrono::system_clock::now());
}

void FakeDaemon::accept_all() {
  for (;;) {
    pollfd waiting[] = {{listener_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}};
    if (::poll(waiting, 2, -1) < 0) continue;
    if (waiting[1].revents != 0) return;
    const int socket = ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) continue;
    ++connections_;
    {
      const std::lock_guard lock(mutex_);
      sockets_.emplace_back(::fcntl(socket, F_DUPFD_CLOEXEC, 0));
    }
    grpc::AddInsecureChannelFromFd(server_.get(), socket);
  }
}

void FakeDaemon::cut() {
  const std::lock_guard lock(mutex_);
  for (const auto& socket : sockets_) ::shutdown(socket.get(), SHUT_RDWR);
  sockets_.clear();
}

std::string FakeDaemon::artifact(const std::string& payload) {
  const std::string elf = "\177ELF" + payload;
  return elf + common::make_tail(elf, {}, common::sha256("key"), 0);
}

void FakeDaemon::send_artifact(Events& events, const std::string& bytes, v1::Artifact artifact, std::size_t chunk) {
  for (std::size_t at = 0; at < bytes.size(); at += chunk) {
    v1::CompileEvent event;
    event.set_chunk(bytes.substr(at, chunk));
    events.Write(event);
  }
  if (artifact.key().empty()) artifact.set_key(common::sha256("key").hex());
  if (artifact.size() == 0) artifact.set_size(bytes.size());
  if (const auto view = common::verify_artifact(bytes); view && artifact.digest().empty())
    artifact.set_digest(view->digest.hex());
  v1::CompileEvent event;
  *event.mutable_finished()->mutable_artifact() = std::move(artifact);
  events.Write(event);
}

}  // namespace jitc::testing
