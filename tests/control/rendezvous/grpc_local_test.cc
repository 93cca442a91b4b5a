// The rendezvous's Unix socket: for this user's processes on this host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/file.h"
#include "rendezvous/store_client.h"
#include "tests/control/rendezvous/grpc_nodes.h"
#include "transport/local_socket.h"

namespace fleet {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class Local : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::mkdir(folder_.c_str(), 0700), 0); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  RendezvousServerOptions options(const std::string& folder) {
    RendezvousServerOptions options;
    options.network = false;
    options.local_folder = folder;
    return options;
  }
  // One node, its store, and the verdict.
  void expect_job_works(const std::string& folder) {
    RunningJob job(1, options(folder));
    EXPECT_EQ(job.server->port(), 0);
    const auto store = connect_store(job.server->local_address(), "default", 1, 0);
    EXPECT_EQ(store->add("key", 2), 2);
    job.nodes[0]->finish();
    EXPECT_TRUE(succeeded(job.nodes[0]->wait_for<Verdict>().value()));
  }
  int files() const {
    int count = 0;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      count += file.path().string().find("rendezvous.") != std::string::npos;
    }
    return count;
  }

  const std::string folder_ = ::testing::TempDir() + "local_" + std::to_string(::getpid());
};

TEST_F(Local, JobOfOneNode_NeedsNoPortAndLeavesNoFile) {
  expect_job_works(folder_);
  EXPECT_EQ(files(), 0);
}

TEST_F(Local, FolderWithALongPathOrSpaces_IsReachedByAShortOne) {
  for (const std::string& name : {std::string(200, 'l'), std::string("a folder %41")}) {
    const std::string inside = folder_ + "/" + name;
    ASSERT_EQ(::mkdir(inside.c_str(), 0700), 0);
    const LocalSocket socket = LocalSocket::listen(inside);
    EXPECT_THAT(socket.address(), StartsWith("unix:/proc/"));
    expect_job_works(inside);
  }
}

TEST_F(Local, NoFolder_IsAnAbstractSocket) {
  EXPECT_THAT(LocalSocket::listen("").address(), StartsWith("unix-abstract:"));
  EXPECT_THAT(LocalSocket::listen(folder_ + "/missing").address(), StartsWith("unix-abstract:"));
  expect_job_works("");
}

TEST_F(Local, NetworkAndUnixSocket_ServeTheSameJob) {
  auto both = options(folder_);
  both.network = true;
  RunningJob job(2, both);
  const auto here = connect_store(job.server->local_address(), "default", 1, 0);
  const auto there = connect_store(job.server->network_address(), "default", 1, 1);
  EXPECT_THAT(job.server->local_address(), StartsWith("unix:"));
  EXPECT_THAT(job.server->network_address(), StartsWith("127.0.0.1:"));
  here->set("key", "value");
  EXPECT_EQ(there->get("key", kSoon), "value");
}

// The next listener removes the socket of a process that was killed. A socket that is still in use
// stays.
TEST_F(Local, SocketsOfTheDead_AreRemoved) {
  const pid_t child = ::fork();
  if (child == 0) {
    new LocalSocket(LocalSocket::listen(folder_));
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(files(), 1);
  const LocalSocket first = LocalSocket::listen(folder_);
  EXPECT_EQ(files(), 1);
  const LocalSocket second = LocalSocket::listen(folder_);
  EXPECT_EQ(files(), 2);
}

// Connects as another user and returns the result of recv(): 0 if the connection was closed.
int connect_as(uid_t user, const std::string& abstract) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setgid(user) != 0 || ::setuid(user) != 0) ::_exit(100);
    const UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path + 1, abstract.data(), abstract.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + abstract.size());
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) ::_exit(101);
    (void)::send(fd.get(), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33, MSG_NOSIGNAL);
    char byte;
    ::_exit(::recv(fd.get(), &byte, 1, 0) > 0 ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(Local, AnotherUser_IsTurnedAway) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  RunningJob job(1, options(""));  // only the kernel's credentials protect this one
  const std::string name = job.server->local_address().substr(std::string("unix-abstract:").size());
  EXPECT_EQ(connect_as(0, name), 1);
  EXPECT_EQ(connect_as(65'534, name), 0);
}

}  // namespace
}  // namespace fleet
