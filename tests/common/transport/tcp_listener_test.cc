#include "transport/tcp_listener.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/file.h"

namespace fleet {
namespace {

bool retries_soon(const UniqueFd& socket) {
  int on = 0;
  socklen_t size = sizeof on;
  ::getsockopt(socket.get(), IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, &size);
  return on != 0;
}

TEST(TcpRetransmission, ConnectionsOfBothEnds_RetrySoon) {
  const UniqueFd listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof name;
  auto* const address = reinterpret_cast<sockaddr*>(&name);
  ASSERT_EQ(::bind(listening.get(), address, size), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  ASSERT_EQ(::getsockname(listening.get(), address, &size), 0);
  limit_retransmission_backoff(listening.get());
  const UniqueFd connected(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(connected.get(), address, size), 0);
  const UniqueFd accepted(::accept(listening.get(), nullptr, nullptr));
  EXPECT_TRUE(retries_soon(accepted));  // as what listens
  EXPECT_FALSE(retries_soon(connected));
  const std::string port = std::to_string(ntohs(name.sin_port));
  limit_retransmission_backoff_to("ipv4:127.0.0.2:" + port);
  EXPECT_FALSE(retries_soon(connected));
  limit_retransmission_backoff_to("ipv4:127.0.0.1:" + port);
  EXPECT_TRUE(retries_soon(connected));
}

}  // namespace
}  // namespace fleet
