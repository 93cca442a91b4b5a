#include "rendezvous/screened_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

namespace fleet {
namespace {

constexpr size_t kPiece = 16 << 10;  // bytes per read, so that other connections get their turn
// Kernel buffer for a client that must wait, and for answers that it does not read.
constexpr int kKernelBytes = 128 << 10;

// An empty SETTINGS frame tells a client of another protocol that this server speaks plain HTTP/2.
constexpr std::string_view kSettings{"\0\0\0\4\0\0\0\0\0", 9};

void bound_buffers(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kKernelBytes, sizeof kKernelBytes);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kKernelBytes, sizeof kKernelBytes);
}

std::array<char, kPiece>& scratch() {
  thread_local std::array<char, kPiece> bytes;
  return bytes;
}

// Sends as much as the other side accepts now. false: the connection is broken.
bool send_some(int fd, std::string_view* bytes) {
  while (!bytes->empty()) {
    const ssize_t n = ::send(fd, bytes->data(), bytes->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    bytes->remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

// -1: no data now; -2: failed.
ssize_t receive(int fd) {
  for (;;) {
    const ssize_t n = ::recv(fd, scratch().data(), kPiece, MSG_DONTWAIT);
    if (n >= 0) return n;
    if (errno != EINTR) return errno == EAGAIN ? -1 : -2;
  }
}

}  // namespace

ScreenedConnection::ScreenedConnection(Server& server, UniqueFd client, std::string address,
                                       std::string peer)
    : server_(server),
      address_(std::move(address)),
      peer_(std::move(peer)),
      client_(server.loop),
      grpc_(server.loop),
      pause_(server.loop),
      limiter_(server.limits, std::chrono::steady_clock::now()),
      began_(std::chrono::steady_clock::now()) {
  bound_buffers(client.get());
  client_.assign(std::move(client));
}

void ScreenedConnection::begin() {
  server_.streams.admit(address_, peer_, std::chrono::steady_clock::now());
  proceed();
}

void ScreenedConnection::close(const char* reason) {
  if (std::exchange(ended_, true)) return;
  const auto self = shared_from_this();
  pause_.cancel();
  client_.close();
  grpc_.close();
  server_.streams.closed(address_, peer_, std::chrono::steady_clock::now());
  server_.on_end(*this, reason);
}

void ScreenedConnection::wait(LoopDescriptor& descriptor, Event event, bool* waiting, Then then) {
  if (std::exchange(*waiting, true)) return;
  descriptor.wait(event, [self = shared_from_this(), waiting, then](std::error_code error) {
    *waiting = false;
    if (!error && !self->ended_) (self.get()->*then)();
  });
}

// Stop reading from a client that does not read its answers: they would pile up in the server.
void ScreenedConnection::proceed() {
  if (ended_) return;
  if (grpc_ended_ && to_client_.empty()) return close(nullptr);
  using This = ScreenedConnection;
  if (!to_client_.empty()) {
    wait(client_, Event::kWritable, &client_writable_, &This::write_client);
  } else if (grpc_.is_open() && !grpc_ended_) {
    wait(grpc_, Event::kReadable, &grpc_readable_, &This::read_server);
  }
  if (!to_grpc_.empty() && grpc_.is_open()) {
    wait(grpc_, Event::kWritable, &grpc_writable_, &This::write_server);
  } else if (to_client_.empty() && !grpc_ended_ && !pausing_) {
    go_on_reading(std::chrono::steady_clock::now());
  }
}

void ScreenedConnection::go_on_reading(Time now) {
  std::chrono::milliseconds pause{0};
  if (!held_.empty()) pause = server_.streams.wait_for(address_, peer_, now);
  if (limiter_.partial_bytes() > kPiece && !server_.streams.may_continue(peer_)) {
    pause = std::max(pause, std::chrono::milliseconds(5));
  }
  if (pause.count() > 0) return wait_for(pause);
  if (held_.empty())
    return wait(client_, Event::kReadable, &client_readable_, &ScreenedConnection::read_client);
  const std::string held = std::exchange(held_, {});
  take(held);
}

void ScreenedConnection::wait_for(std::chrono::milliseconds pause) {
  pausing_ = true;
  pause_.after(pause, [self = shared_from_this()] {
    self->pausing_ = false;
    self->proceed();
  });
}

void ScreenedConnection::read_client() {
  const ssize_t n = receive(client_.get());
  if (n == 0 || n == -2) return close(nullptr);
  if (n < 0) return proceed();
  take({scratch().data(), static_cast<size_t>(n)});
}

// Passes the client's bytes to gRPC, except those that would open too many streams now.
void ScreenedConnection::take(std::string_view bytes) {
  const auto now = std::chrono::steady_clock::now();
  const size_t may_open = server_.streams.may_open(address_, peer_, now);
  const auto read = limiter_.client_sent(bytes, may_open, now);
  if (read.error) {
    std::string_view settings = kSettings;
    if (!grpc_.is_open()) send_some(client_.get(), &settings);
    return close(read.error);
  }
  held_.assign(bytes.substr(read.consumed));
  to_grpc_.append(bytes.substr(0, read.consumed));
  if (!grpc_.is_open() && limiter_.has_preface() && !open_server_side()) return close(nullptr);
  account();
  if (!ended_ && grpc_.is_open()) return write_server();
  proceed();
}

bool ScreenedConnection::open_server_side() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0) return false;
  UniqueFd theirs(ends[1]);
  grpc_.assign(UniqueFd(ends[0]));
  for (const int end : ends) bound_buffers(end);
  server_.hand_over(std::move(theirs));
  return true;
}

void ScreenedConnection::account() {
  const auto now = std::chrono::steady_clock::now();
  server_.streams.update(address_, peer_, limiter_.open_streams(),
                         limiter_.opened() - std::exchange(opened_, limiter_.opened()),
                         limiter_.partial_bytes(), now);
  while (const auto excess = server_.streams.excess(address_)) {
    server_.on_excess(*excess);
    if (ended_) return;
  }
}

void ScreenedConnection::write_server() {
  std::string_view left = to_grpc_;
  if (!send_some(grpc_.get(), &left)) return close(nullptr);
  to_grpc_.erase(0, to_grpc_.size() - left.size());
  if (to_grpc_.empty()) to_grpc_.shrink_to_fit();
  proceed();
}

void ScreenedConnection::read_server() {
  const ssize_t n = receive(grpc_.get());
  if (n == -1) return proceed();
  if (n <= 0) {
    grpc_ended_ = true;
    return proceed();
  }
  std::string_view bytes(scratch().data(), static_cast<size_t>(n));
  const size_t before = limiter_.open_streams();
  limiter_.server_sent(bytes);
  if (!send_some(client_.get(), &bytes)) return close(nullptr);
  to_client_.assign(bytes);
  if (limiter_.open_streams() != before) account();
  proceed();
}

void ScreenedConnection::write_client() {
  std::string_view left = to_client_;
  if (!send_some(client_.get(), &left)) return close(nullptr);
  to_client_.erase(0, to_client_.size() - left.size());
  if (to_client_.empty()) to_client_.shrink_to_fit();
  proceed();
}

void ScreenedConnection::check(Time now) {
  if (!limiter_.has_preface() && now - began_ > server_.handshake_timeout)
    return close("it sent no HTTP/2 greeting in time");
  const auto began = limiter_.oldest_partial();
  if (began && now - *began > server_.message) close("one of its messages took too long");
}

}  // namespace fleet
