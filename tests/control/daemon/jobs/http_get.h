// A client of the HTTP servers of a job, as raw bytes.
#pragma once

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>

#include "base/file.h"

namespace fleet {

// The response to GET PATH at this port of 127.0.0.1; "" if nobody answers. Reads until the server
// ends it or, if `until` is not empty, until a whole event with this text has come. `head`: more
// lines of the request. The bound is against hanging.
inline std::string http_get(int port, const std::string& path, const std::string& head = "",
                            const std::string& until = "") {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where = {};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where) != 0) return "";
  const std::string request = "GET " + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n" + head + "\r\n";
  ::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  std::string all;
  char chunk[4096];
  const auto complete = [&] {
    const size_t at = until.empty() ? std::string::npos : all.find(until);
    return at != std::string::npos && all.find("\n\n", at) != std::string::npos;
  };
  while (!complete()) {
    pollfd ready = {socket.get(), POLLIN, 0};
    if (::poll(&ready, 1, 1000) == 0) {
      if (std::chrono::steady_clock::now() > end) return all + "\n(it goes on)";
      continue;
    }
    const ssize_t n = ::recv(socket.get(), chunk, sizeof chunk, 0);
    if (n <= 0) break;
    all.append(chunk, static_cast<size_t>(n));
  }
  return all;
}

}  // namespace fleet
