// What a rank does in the tests of whole jobs, where a shell cannot.
//
//   listen PORT_VARIABLE   listens on the port of that variable ("ip:port" or "port") as servers
//   do,
//                          with SO_REUSEADDR; and sees that without it the port is taken
//   store                  meets all ranks through the job's Store
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "rendezvous/store_client.h"

namespace {

bool can_listen(const std::string& address, int port, bool reuse) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = reuse ? 1 : 0;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  ::inet_pton(AF_INET, address.c_str(), &where.sin_addr);
  const bool bound =
      ::bind(fd, reinterpret_cast<sockaddr*>(&where), sizeof where) == 0 && ::listen(fd, 8) == 0;
  ::close(fd);
  return bound;
}

int listen_on(const char* variable) {
  const char* value = std::getenv(variable);
  if (!value) return 3;
  const std::string text = value;
  const size_t colon = text.rfind(':');
  const std::string address = colon == std::string::npos ? "127.0.0.1" : text.substr(0, colon);
  const int port = std::atoi(text.c_str() + (colon == std::string::npos ? 0 : colon + 1));
  if (can_listen(address, port, false)) {
    std::puts("the port was free for anybody");
    return 4;
  }
  if (!can_listen(address, port, true)) {
    std::puts("the port cannot be listened on with SO_REUSEADDR");
    return 5;
  }
  std::printf("listened on %s\n", text.c_str());
  return 0;
}

int meet_in_store() {
  using namespace std::chrono_literals;
  const auto store = fleet::connect_store_from_env();
  const int rank = std::atoi(std::getenv("RANK")), size = std::atoi(std::getenv("WORLD_SIZE"));
  store->set("rank" + std::to_string(rank), std::to_string(rank * rank));
  fleet::store_barrier(*store, "all", size, 30s);
  int sum = 0;
  for (int other = 0; other < size; ++other) {
    sum += std::atoi(store->get("rank" + std::to_string(other), 30s).c_str());
  }
  std::printf("sum %d\n", sum);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    if (what == "listen" && argc > 2) return listen_on(argv[2]);
    if (what == "store") return meet_in_store();
  } catch (const fleet::Error& error) {
    std::puts(error.what());
    return 1;
  }
  return 64;
}
