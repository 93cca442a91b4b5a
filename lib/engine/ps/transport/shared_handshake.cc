// How both ends of a connection through shared memory find each other: the client sends a line with
// the id and the handle of its memory to the server's Unix socket, and the server answers with one.
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "ps/transport/shared_memory.h"
#include "transport/local_socket.h"

namespace fleet::ps {
namespace {

constexpr std::string_view kAbstract = "unix-abstract:";
constexpr std::string_view kAccepted = "accepted\n";
constexpr size_t kMaxLine = 512;
constexpr std::chrono::milliseconds kLineTimeout{2'000};

UniqueFd connect_to(const std::string& address) {
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (!socket || !address.starts_with(kAbstract)) return {};
  const std::string word = address.substr(kAbstract.size());
  if (word.size() + 1 > sizeof name.sun_path) return {};
  std::memcpy(name.sun_path + 1, word.data(), word.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + word.size());
  if (::connect(socket.get(), reinterpret_cast<sockaddr*>(&name), size) != 0) return {};
  return socket;
}

bool send_line(const UniqueFd& socket, std::string_view line) {
  return ::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(line.size());
}

// With its end; "" if none comes in time.
std::string receive_line(const UniqueFd& socket, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  std::string line;
  while (line.size() < kMaxLine && !line.ends_with('\n')) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{socket.get(), POLLIN, 0};
    if (left.count() <= 0) return {};
    if (::poll(&ready, 1, static_cast<int>(left.count())) < 0 && errno != EINTR) return {};
    char c = 0;
    const ssize_t count = ::recv(socket.get(), &c, 1, MSG_DONTWAIT);
    if (count == 0) return {};
    if (count < 0 && errno != EAGAIN && errno != EINTR) return {};
    if (count > 0) line += c;
  }
  return line.ends_with('\n') ? line : std::string();
}

}  // namespace

std::shared_ptr<SharedConnection> SharedConnection::connect(const std::string& socket,
                                                            const std::string& id,
                                                            const std::string& peer,
                                                            ConnectionHandler& handler,
                                                            std::chrono::milliseconds timeout) {
  UniqueFd connected = connect_to(socket);
  if (!connected || !is_own_peer(connected.get())) return nullptr;
  try {
    auto memory = fleet::Segment::create_shared(2 * SharedRing::kBytes);
    if (!send_line(connected, id + " " + memory->handle() + "\n")) return nullptr;
    if (receive_line(connected, timeout) != kAccepted) return nullptr;
    memory->close_handle();
    return std::make_shared<SharedConnection>(peer, handler, std::move(connected),
                                              std::move(memory), true);
  } catch (const Error& error) {
    spdlog::debug("{}: no shared memory: {}", peer, error.what());
    return nullptr;
  }
}

std::shared_ptr<SharedConnection> SharedConnection::accept(
    UniqueFd socket, const std::function<std::string(const std::string& id)>& find,
    ConnectionHandler& handler) {
  if (!is_own_peer(socket.get())) return nullptr;
  std::string line = receive_line(socket, kLineTimeout);
  const size_t space = line.find(' ');
  if (space == std::string::npos) return nullptr;
  line.pop_back();
  const std::string peer = find(line.substr(0, space));
  if (peer.empty()) return nullptr;
  try {
    auto memory = fleet::Segment::attach(line.substr(space + 1));
    if (memory->bytes() < 2 * SharedRing::kBytes) return nullptr;
    memory->close_handle();
    return std::make_shared<SharedConnection>(peer, handler, std::move(socket), std::move(memory),
                                              false);
  } catch (const Error& error) {
    spdlog::debug("{}: no shared memory: {}", peer, error.what());
    return nullptr;
  }
}

void SharedConnection::confirm() { (void)send_line(socket_, kAccepted); }

}  // namespace fleet::ps
