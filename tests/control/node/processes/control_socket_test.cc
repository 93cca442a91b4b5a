#include "node/control_socket.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/thread.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

// A launcher's socket in this process, with answers that the test sets.
class ControlSocketTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "control_XXXXXX";
    ASSERT_NE(::mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    ::setenv("FLEET_RUNTIME_DIR", folder.c_str(), 1);
  }
  void TearDown() override {
    stop();
    socket_.reset();
    ::unsetenv("FLEET_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  void serve(ControlSocket::OnRequest on_request) {
    socket_ = std::make_unique<ControlSocket>(loop_, std::move(on_request));
    thread_ = std::make_unique<Thread>("loop", [this] { loop_.run_until_stopped(); });
  }

  // The callback does not run afterwards.
  void stop() {
    loop_.stop();
    thread_.reset();
  }

  std::string folder_;
  EventLoop loop_;
  std::unique_ptr<ControlSocket> socket_;
  std::unique_ptr<Thread> thread_;
};

wire::ControlRequest stacks_request() {
  wire::ControlRequest request;
  request.mutable_stacks();
  return request;
}

TEST_F(ControlSocketTest, Request_GetsItsReply) {
  serve([](const wire::ControlRequest& request, const ControlSocket::Reply& reply) {
    EXPECT_EQ(request.kind_case(), wire::ControlRequest::kStacks);
    wire::ControlReply answer;
    answer.mutable_stacks()->add_silent(7);
    reply(answer);
  });
  EXPECT_EQ(send_control_request(::getpid(), stacks_request(), 60).stacks().silent(0), 7);
}

TEST_F(ControlSocketTest, Requests_AreAnsweredInAnyOrder) {
  std::vector<ControlSocket::Reply> later;
  serve([&](const wire::ControlRequest& request, ControlSocket::Reply reply) {
    if (request.has_stacks()) return later.push_back(std::move(reply));
    wire::ControlReply answer;
    answer.mutable_accepted();
    reply(answer);
    answer.mutable_failure()->set_what(std::string(1 << 20, 'x'));
    for (const auto& one : later) one(answer);
    later.clear();
  });
  std::atomic<bool> answered = false;
  size_t size = 0;
  std::thread asking([&] {
    try {
      send_control_request(::getpid(), stacks_request(), 60);
    } catch (const Error& error) {
      size = error.failure().size();
    }
    answered = true;
  });
  wire::ControlRequest now;
  *now.mutable_stop() = stop_request(SIGTERM);
  while (!answered) {
    EXPECT_TRUE(send_control_request(::getpid(), now, 60).has_accepted());
    std::this_thread::yield();
  }
  asking.join();
  stop();  // it uses `later`
  EXPECT_EQ(size, 1u << 20);
}

// A loop of its own asks, as fleetd's does.
TEST_F(ControlSocketTest, RequestWithoutWaiting_GetsItsReplyInTheLoop) {
  serve([](const wire::ControlRequest& request, const ControlSocket::Reply& reply) {
    wire::ControlReply answer;
    answer.mutable_live()->set_world_size(request.has_live() ? 3 : 0);
    reply(answer);
  });
  EventLoop loop;
  wire::ControlRequest request;
  request.mutable_live();
  int size = 0, replies = 0;
  send_control_request(loop, ::getpid(), request, 60, [&](const wire::ControlReply& reply) {
    size = reply.live().world_size();
    ++replies;
  });
  loop.run();
  EXPECT_EQ(size, 3);
  EXPECT_EQ(replies, 1);
}

TEST_F(ControlSocketTest, RequestWithoutWaiting_UnansweredOrCutOff_Fails) {
  std::vector<ControlSocket::Reply> never;
  serve([&](const wire::ControlRequest&, ControlSocket::Reply reply) {
    never.push_back(std::move(reply));
  });
  EventLoop loop;
  std::vector<wire::Failure::Code> codes;
  send_control_request(loop, ::getpid(), stacks_request(), 1, [&](const wire::ControlReply& reply) {
    codes.push_back(reply.failure().code());
  });
  loop.run();
  stop();  // it uses `never`
  EXPECT_EQ(codes, std::vector{wire::Failure::TIMEOUT});
}

TEST_F(ControlSocketTest, SocketOfAnEndedFleetrun_IsRemoved) {
  {
    const ControlSocket socket(loop_, [](const wire::ControlRequest&, ControlSocket::Reply) {});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(ControlSocketTest, FailureInTheReply_IsThrown) {
  serve([](const wire::ControlRequest&, const ControlSocket::Reply& reply) {
    wire::ControlReply answer;
    *answer.mutable_failure() = to_wire(Error(ErrorCode::kTimeout, "too busy"));
    reply(answer);
  });
  try {
    send_control_request(::getpid(), stacks_request(), 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  }
}

TEST_F(ControlSocketTest, BytesThatAreNoMessage_OnlyCloseTheirConnection) {
  serve([](const wire::ControlRequest&, const ControlSocket::Reply& reply) { reply({}); });
  const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = control_socket_of(::getpid());
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::send(client.get(), "stacks\n\n", 8, MSG_NOSIGNAL), 8);
  char byte;
  EXPECT_EQ(::recv(client.get(), &byte, 1, 0), 0);  // closed
}

TEST_F(ControlSocketTest, NoSuchFleetrun_IsNotFound) {
  try {
    send_control_request(::getpid(), stacks_request(), 60);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

// A child that waits for signals, and ends with the last one it was sent.
TEST_F(ControlSocketTest, StopOfALauncherWithoutASocket_IsASignal) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    int signal = 0;
    ::sigwait(&signals, &signal);
    ::_exit(signal);
  }
  ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  stop_launcher(ProcessHandle(child), stop_request(SIGTERM));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), SIGTERM);
  try {
    stop_launcher(ProcessHandle(child), stop_request(SIGTERM));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
  }
}

}  // namespace
}  // namespace fleet
