#include "node/control_socket.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <thread>

#include "base/error.h"

namespace fleet {
namespace {

struct ControlSocketTest : ::testing::Test {
  ControlSocketTest() {
    char name[] = "/tmp/fleet-control-XXXXXX";
    folder = ::mkdtemp(name);
    ::setenv("FLEET_RUNTIME_DIR", folder.c_str(), 1);
  }
  ~ControlSocketTest() override {
    ::unsetenv("FLEET_RUNTIME_DIR");
    std::filesystem::remove_all(folder);
  }
  std::string folder;
  boost::asio::io_context loop;
};

TEST_F(ControlSocketTest, Requests_AreAnsweredInAnyOrder) {
  std::vector<ControlSocket::Reply> later;
  ControlSocket socket(loop, [&](const std::string& request, ControlSocket::Reply reply) {
    if (request == "later") return later.push_back(std::move(reply));
    reply("answer to " + request);
    for (const auto& one : later) one(std::string(1 << 20, 'x'));
    later.clear();
  });
  std::thread running([&] {
    const auto keep = boost::asio::make_work_guard(loop);
    loop.run();
  });
  std::string first;
  std::thread asking([&] { first = send_control_request(::getpid(), "later", 30); });
  while (first.empty()) {
    EXPECT_EQ(send_control_request(::getpid(), "now", 30), "answer to now");
    std::this_thread::yield();
  }
  asking.join();
  EXPECT_EQ(first.size(), 1u << 20);
  loop.stop();
  running.join();
}

TEST_F(ControlSocketTest, Gone_CannotBeAsked) {
  {
    ControlSocket socket(loop, [](const std::string&, ControlSocket::Reply) {});
  }
  EXPECT_THROW(send_control_request(::getpid(), "anything", 30), Error);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

}  // namespace
}  // namespace fleet
