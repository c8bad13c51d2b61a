// How the daemon becomes and remains the one daemon of its runtime directory: detached start, a clean process, the
// lock.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/error.h"
#include "common/files.h"

namespace jitc::service {

// Whoever started the daemon and waits to hear that it serves, or why it does not.
class Starter {
 public:
  // Forks (call before any thread starts) and returns in the child only. The parent waits for ready() or failed(),
  // prints the text, and exits with its code. Nothing that the child holds keeps the caller's pipes open.
  static common::Result<Starter> detach();
  // Stays in the foreground; `ready_fd` (or -1) gets one byte when ready.
  static Starter stay(int ready_fd) { return Starter(common::Fd(ready_fd), false); }

  void ready();
  // Says so and gives the exit code: through the parent when detached, on stderr otherwise.
  int ended(const std::string& text, int exit_code);
  int descriptor() const { return pipe_.get(); }
  bool detached() const { return detached_; }

 private:
  Starter(common::Fd pipe, bool detached) : pipe_(std::move(pipe)), detached_(detached) {}
  common::Fd pipe_;
  bool detached_;
};

// Leaves nothing of the caller's: signal mask and dispositions, umask, working directory, descriptors from 3 on except
// `keep` (sorted, -1 ignored). `detached` also leaves the session and the standard streams.
void clean_process(bool detached, std::initializer_list<int> keep);
// Standard error, the worker's too, goes to the end of this file. Failures leave it where it is.
void append_errors_to(const std::string& file);
// Descriptor limit up to what is allowed; children are reparented to this process when their parent dies.
void prepare_process();

// Holds <runtime_dir>/jitcd.lock, with this process's id in it, until release() or the process's end.
class DaemonLock {
 public:
  // Makes the directory when it is not there. kRefused "already running, pid N" when another process holds the lock.
  // `is_last`: nobody needs the directory after this daemon.
  static common::Result<DaemonLock> take(const std::string& runtime_dir, bool is_last = false);
  DaemonLock(DaemonLock&&) = default;
  ~DaemonLock() { release(); }
  // Removes the file too, unless the name is another one's by now. The last daemon of its directory removes the
  // identity file and the directory, unless there is more in it.
  void release();
  // Does the file still have its name? Else it keeps nobody away any more.
  bool guards() const;

 private:
  DaemonLock(std::string directory, bool is_last, common::Fd file);
  std::string directory_, path_;
  bool is_last_;
  common::Fd file_;
};

// Ends the process with 0 when all that is ours is put away. gRPC's own shutdown, which destructors would start, waits
// up to ten seconds for a poller that it left behind after a large write. Returns where leaks are to be found at exit.
void end_process();

// Ends the process with 0 when `patience` is over, whatever hangs then (a shared store whose server is gone). The
// lock's file may stay; the lock does not.
void end_within(std::chrono::seconds patience);

// Fails when a limit on processes and threads leaves too few for a daemon: gRPC does not tell, it ends the process.
// Call it before any thread starts that matters.
common::Result<void> check_thread_limit();

// How many descriptors one process may have.
std::uint64_t descriptor_limit();

// Is this the refusal of DaemonLock::take? For who only wants a daemon to run, it is not a failure.
bool is_already_running(const common::Error& error);

// The directory of the running executable.
std::string executable_directory();

}  // namespace jitc::service
