// A daemon that says what a test tells it to: a real gRPC server behind a real Unix socket, in the test's process.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/files.h"
#include "jitc/v1/compiler.grpc.pb.h"

namespace jitc::testing {

class FakeDaemon {
 public:
  using Events = grpc::ServerWriter<v1::CompileEvent>;
  struct Script {
    std::function<void(v1::HelloReply&)> hello;  // changes the reply of a fitting daemon; may be empty
    std::function<grpc::Status(const v1::CompileRequest&, Events&)> compile;
    std::map<std::string, std::uint64_t> counters;
  };

  FakeDaemon(std::string socket_path, Script script);
  ~FakeDaemon();  // cuts every connection and waits for the handlers
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;

  // Ends every connection at once, as the kernel does for a killed process.
  void cut();

  int connections() const { return connections_; }
  int hellos() const { return hellos_; }
  int compiles() const { return compiles_; }

  // The whole file of an artifact that holds `payload`, of the key that send_artifact() says.
  static std::string artifact(const std::string& payload);
  // An event that carries the artifact of these bytes, and its chunks of at most `chunk` bytes before it.
  static void send_artifact(Events& events, const std::string& bytes, v1::Artifact artifact,
                            std::size_t chunk = 1 << 20);

 private:
  class Service;
  void accept_all();

  const std::string socket_path_;
  const Script script_;
  std::atomic<int> connections_{0}, hellos_{0}, compiles_{0};
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  common::Fd listener_, stop_;
  std::mutex mutex_;  // guards sockets_
  std::vector<common::Fd> sockets_;
  std::thread acceptor_;
};

}  // namespace jitc::testing
