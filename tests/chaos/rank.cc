#include "tests/chaos/rank.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/env.h"
#include "base/owned_file.h"
#include "base/text.h"

namespace fleet::chaos {
namespace {

struct Address {
  sockaddr_storage name{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

// "10.78.0.1:6070" or "[fd78::1]:6070".
Address address_of(const std::string& endpoint) {
  const size_t colon = endpoint.rfind(':');
  std::string host = endpoint.substr(0, colon);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  addrinfo hints{}, *found = nullptr;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  Address address;
  if (::getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found) != 0)
    return address;
  std::memcpy(&address.name, found->ai_addr, found->ai_addrlen);
  address.size = found->ai_addrlen;
  ::freeaddrinfo(found);
  return address;
}

int listen_at(const std::string& endpoint) {
  const Address address = address_of(endpoint);
  const int fd = ::socket(address.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool listens = ::bind(fd, address.get(), address.size) == 0 && ::listen(fd, 64) == 0;
  return listens ? fd : -1;
}

int connect_to(const std::string& endpoint) {
  const Address address = address_of(endpoint);
  for (int tries = 0; tries < 20'000; ++tries) {
    const int fd = ::socket(address.name.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::connect(fd, address.get(), address.size) == 0) return fd;
    ::close(fd);
    ::usleep(1'000);  // it has not been started yet
  }
  return -1;
}

// Outlives the rank unless another process ends it.
void start_helper() {
  if (::fork() != 0) return;
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  for (;;) ::pause();
}

// Whole at once, but not synced: on a busy disk that can take longer than a rank's grace.
void write_marker(const std::string& file, const std::string& text) {
  replace_file(AT_FDCWD, file, text, {.sync = false});
}

bool exists(const std::string& file) { return ::access(file.c_str(), F_OK) == 0; }

// All ranks of this generation are connected: it has gone on. That happens once.
int go_on(const std::string& rank, size_t ranks) {
  const std::string own = "again." + rank;
  if (exists(own)) return 5;
  write_marker(own, std::to_string(unix_seconds()));
  for (size_t other = 0; other < ranks; ++other) {
    while (!exists("again." + std::to_string(other))) ::usleep(1'000);
  }
  return 0;
}

// A peer that was told to stop a moment before this rank has ended.
bool others_received_stop(size_t ranks) {
  for (size_t other = 0; other < ranks; ++other) {
    if (exists("term." + std::to_string(other))) return true;
  }
  return false;
}

}  // namespace

int run_rank() {
  const auto endpoints = split(env_or("PADDLE_TRAINER_ENDPOINTS", ""), ',');
  const std::string rank = env_or("PADDLE_TRAINER_ID", "");
  const size_t own = static_cast<size_t>(std::atoi(rank.c_str()));
  start_helper();
  sigset_t stops;
  ::sigemptyset(&stops);
  ::sigaddset(&stops, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &stops, nullptr);
  std::vector<pollfd> watched = {{::signalfd(-1, &stops, SFD_CLOEXEC), POLLIN, 0}};

  const int listening = listen_at(endpoints[own]);
  if (listening < 0) return 3;
  for (size_t other = 0; other < own; ++other) {
    watched.push_back({connect_to(endpoints[other]), POLLIN, 0});
  }
  while (watched.size() < endpoints.size()) {
    watched.push_back({::accept(listening, nullptr, nullptr), POLLIN, 0});
  }
  if (env_int_or("FLEET_GENERATION", 1) > 1) return go_on(rank, endpoints.size());
  write_marker("ready." + rank, std::to_string(::getpid()));
  for (;;) {
    // A sign of life now and then.
    const int ready = ::poll(watched.data(), watched.size(), 200);
    if (ready == 0 && ::write(STDOUT_FILENO, "alive\n", 6) != 6) return 4;
    if (ready <= 0) continue;
    if (watched[0].revents != 0) {
      write_marker("term." + rank, std::to_string(unix_seconds()));
      return 0;
    }
    if (!others_received_stop(endpoints.size())) return 1;  // a peer is gone
    watched.resize(1);
  }
}

}  // namespace fleet::chaos
