// A daemon of the test's own: in the foreground, in fresh directories, ready when the constructor returns.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/files.h"
#include "jitc/v1/compiler.grpc.pb.h"
#include "tests/support/temporary_directory.h"

namespace jitc::testing {

// A connection that was checked as a client checks it; the stub keeps the channel alive.
std::unique_ptr<v1::Compiler::Stub> connect_stub(const std::string& runtime_dir);
std::shared_ptr<grpc::Channel> connect_channel(const std::string& runtime_dir);

struct StartOptions {
  std::vector<std::string> arguments;    // beyond those that name its directories
  std::vector<std::string> environment;  // NAME=value, beside the test's own
  std::string worker;                    // jitc-stand-in-worker unless named
  std::string shell;                     // commands before it becomes jitcd: limits, variables
  int socket = -1;                       // its descriptor 3
  std::string directory;                 // "run" and "store" are there; empty: in a fresh one
  std::string store;                     // another one than that
};

class TestDaemon {
 public:
  explicit TestDaemon(const StartOptions& options = {});
  ~TestDaemon();  // ends it by SIGTERM, by SIGKILL if need be

  const std::string& runtime_dir() const { return runtime_dir_; }
  const std::string& store() const { return store_; }
  const std::string& directory() const { return directory_.path(); }
  pid_t pid() const { return pid_; }
  std::unique_ptr<v1::Compiler::Stub> stub() const { return connect_stub(runtime_dir_); }
  std::map<std::string, std::uint64_t> stats() const;
  std::vector<pid_t> children() const;  // of the daemon: its worker
  void signal(int number) const;
  // Waits until it has ended; its exit code, or 128 + the signal. One that does not end within a minute is killed, and
  // the test fails.
  int wait();

 private:
  TemporaryDirectory directory_;  // stays empty when another was named
  std::string runtime_dir_, store_;
  pid_t pid_ = 0;
};

std::vector<pid_t> children_of(pid_t parent);

// A place where compiles of the stand-in worker wait until release().
class Gate {
 public:
  explicit Gate(std::string path);
  std::string line() const { return "//! hold " + path_ + "\n"; }
  // Waits until a compile stands at the gate, then lets all through that do.
  void release();
  // As release(), but none that comes later is held either.
  void open();

 private:
  std::string path_;
  common::Fd kept_;
};

// A finished Compile call: all its events.
struct Outcome {
  std::vector<v1::CompileEvent> events;
  std::string bytes;  // the chunks together
  grpc::Status status;
  const v1::CompileEvent::Finished& finished() const;
  const v1::Artifact& artifact() const { return finished().artifact(); }
  const v1::Failure& failure() const { return finished().failure(); }
};
v1::CompileRequest request_for(const std::string& source);
Outcome compile(v1::Compiler::Stub& stub, const v1::CompileRequest& request);

}  // namespace jitc::testing
