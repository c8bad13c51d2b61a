#include "common/runtime_dir.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/environment.h"
#include "tests/support/temporary_directory.h"

namespace jitc::common {
namespace {

using testing::ScopedEnvironment;
using testing::TemporaryDirectory;

TEST(RuntimeDirectory, FollowsSettingThenXdgThenTemp) {
  const ScopedEnvironment none{{"SLURM_JOB_ID", nullptr}, {"PBS_JOBID", nullptr},   {"LSB_JOBID", nullptr},
                               {"JOB_ID", nullptr},       {"FLUX_JOB_ID", nullptr}, {"XDG_RUNTIME_DIR", "/run/user/5"},
                               {"TMPDIR", "/scratch"}};
  EXPECT_EQ(runtime_directory("/x"), "/x");
  EXPECT_EQ(runtime_directory(""), "/run/user/5/jitc");
  const ScopedEnvironment no_xdg{{"XDG_RUNTIME_DIR", nullptr}};
  EXPECT_EQ(runtime_directory(""), "/scratch/jitc-" + std::to_string(::geteuid()));
}

TEST(RuntimeDirectory, NodesAreCalledAsSlurmCallsThem) {
  const ScopedEnvironment node{
      {"XDG_RUNTIME_DIR", "/run/user/5"}, {"PBS_JOBID", "8"}, {"SLURM_JOB_ID", nullptr}, {"SLURMD_NODENAME", "n1"}};
  EXPECT_EQ(runtime_directory(""), "/run/user/5/jitc/8." + host_name()) << "a name that was left over means nothing";
  const ScopedEnvironment job{{"SLURM_JOB_ID", "7"}};
  EXPECT_EQ(runtime_directory(""), "/run/user/5/jitc/7.n1");
}

TEST(RuntimeDirectory, BatchJobsHaveTheirOwnPerNode) {
  const ScopedEnvironment job{
      {"XDG_RUNTIME_DIR", "/run/user/5"}, {"SLURM_JOB_ID", "12/3"}, {"SLURMD_NODENAME", nullptr}};
  EXPECT_EQ(runtime_directory(""), "/run/user/5/jitc/12_3." + host_name());
  EXPECT_EQ(runtime_directory("/x"), "/x") << "a stated directory is taken as it is";
}

TEST(SocketAddress, LongPathsAreRefusedWithTheLimit) {
  EXPECT_TRUE(socket_address(std::string(107, 'a')));
  const auto longer = socket_address(std::string(108, 'a'));
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().kind, ErrorKind::kUsage);
  EXPECT_NE(longer.error().message.find("107"), std::string::npos);
}

class Listener {
 public:
  explicit Listener(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const auto address = socket_address(path).value();
    if (::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(fd_.get(), 5) != 0)
      throw std::runtime_error("cannot listen on " + path);
  }

 private:
  Fd fd_;
};

TEST(ConnectOwn, ConnectsToADaemonOfOnesOwn) {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/s";
  EXPECT_EQ(connect_own(path).error().kind, ErrorKind::kUnreachable);
  const Listener listener(path);
  const auto fd = connect_own(path);
  ASSERT_TRUE(fd) << to_line(fd.error());
  EXPECT_EQ(peer_of(fd->get())->pid, ::getpid());
}

TEST(ConnectOwn, RefusesASquattedSocket) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chown(directory.path().c_str(), 4242, 4242), 0);
  const std::string path = directory.path() + "/s";
  int ready[2];
  int done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(4242) != 0 || ::setuid(4242) != 0) ::_exit(1);
    const Listener listener(path);
    char byte = 'r';
    (void)!::write(ready[1], &byte, 1);
    ::close(done[1]);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const auto fd = connect_own(path);
  for (const int end : {done[0], done[1], ready[0], ready[1]}) ::close(end);
  ::waitpid(child, nullptr, 0);
  ASSERT_FALSE(fd);
  EXPECT_EQ(fd.error().kind, ErrorKind::kRefused);
  EXPECT_NE(fd.error().message.find("4242"), std::string::npos);
}

TEST(ConnectOwn, ConnectsToASocketThatRootListensAt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to become another user";
  const TemporaryDirectory directory;
  ASSERT_EQ(::chmod(directory.path().c_str(), 0755), 0);
  const std::string path = directory.path() + "/s";
  const Listener listener(path);
  ASSERT_EQ(::chmod(path.c_str(), 0666), 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::setgid(4242) == 0 && ::setuid(4242) == 0 && connect_own(path) ? 0 : 1);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(OwnUid, TheOverflowUidIsNobody) {
  EXPECT_TRUE(is_own_uid(::geteuid()));
  EXPECT_FALSE(is_own_uid(::geteuid() + 1));
  EXPECT_FALSE(is_own_uid(65534));
}

TEST(ReportHit, ArrivesAndWithoutListenerIsSilent) {
  const TemporaryDirectory directory;
  report_hit(directory.path(), "nobody listens");
  const Fd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto address = socket_address(directory.path() + "/" + kHitsSocketName).value();
  ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  report_hit(directory.path(), "12345");
  char buffer[16];
  EXPECT_EQ(::recv(fd.get(), buffer, sizeof buffer, 0), 5);
}

}  // namespace
}  // namespace jitc::common
