#include "node/control_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "node/runtime_folder.h"

namespace fleet {

using boost::asio::local::stream_protocol;

namespace {

constexpr size_t kMaxRequest = 4096;

std::string path_in(const std::string& folder, pid_t pid) {
  return folder + "/fleetrun." + std::to_string(pid) + ".sock";
}

// Returns false if the path is too long.
bool set_address(const std::string& path, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  if (path.size() >= sizeof address->sun_path) return false;
  std::memcpy(address->sun_path, path.c_str(), path.size());
  return true;
}

}  // namespace

ControlSocket::ControlSocket(boost::asio::io_context& loop, OnRequest on_request)
    : loop_(loop), on_request_(std::move(on_request)), acceptor_(loop) {
  try {
    path_ = path_in(make_runtime_folder(), ::getpid());
    ::unlink(path_.c_str());  // left by a killed process with our pid
    acceptor_.open();
    acceptor_.bind(stream_protocol::endpoint(path_));
    acceptor_.listen();
    accept();
  } catch (const std::exception& error) {
    spdlog::debug("{}: this fleetrun cannot answer requests: {}", path_, error.what());
    path_.clear();
  }
}

ControlSocket::~ControlSocket() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void ControlSocket::accept() {
  acceptor_.async_accept([this](boost::system::error_code error, stream_protocol::socket socket) {
    if (error) return;
    const uint64_t id = ++last_;
    clients_[id].stream = std::make_unique<ByteStream>(
        loop_, UniqueFd(socket.release()),
        [this, id](std::string_view bytes) { on_bytes(id, bytes); }, [this, id] { drop(id); });
    accept();
  });
}

// Deferred, because the client's stream may be the caller.
void ControlSocket::drop(uint64_t id) {
  boost::asio::post(loop_, [this, id] { clients_.erase(id); });
}

void ControlSocket::on_bytes(uint64_t id, std::string_view bytes) {
  Client& client = clients_.at(id);
  if (client.asked) return;
  client.request += bytes;
  const size_t end = client.request.find('\n');
  if (end == std::string::npos) {
    if (client.request.size() > kMaxRequest) drop(id);
    return;
  }
  client.asked = true;
  on_request_(client.request.substr(0, end),
              [this, id](std::string_view text) { answer(id, text); });
}

void ControlSocket::answer(uint64_t id, std::string_view text) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;  // the client has left
  found->second.stream->send(text);
  found->second.stream->when_sent([this, id] { drop(id); });
}

std::string send_control_request(pid_t pid, const std::string& request, int timeout_seconds) {
  const std::string folder = runtime_folder();
  check_runtime_folder(folder);
  const std::string path = path_in(folder, pid);
  sockaddr_un address;
  if (!set_address(path, &address)) {
    throw Error(ErrorCode::kUsage, "the path of its socket is too long", path,
                "set FLEET_RUNTIME_DIR to a shorter path, also for the job itself");
  }
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval limit = {timeout_seconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw Error(ErrorCode::kNotFound,
                std::string("cannot reach its fleetrun: ") + std::strerror(errno), path);
  }
  const std::string line = request + "\n";
  if (::send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) < 0) {
    throw_errno("cannot send a request to its fleetrun", path);
  }
  std::string answer;
  char chunk[16384];
  for (;;) {
    const ssize_t n = ::recv(socket.get(), chunk, sizeof chunk, 0);
    if (n > 0) answer.append(chunk, static_cast<size_t>(n));
    if (n == 0) return answer;
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      throw Error(ErrorCode::kTimeout,
                  "its fleetrun did not answer within " + std::to_string(timeout_seconds) + " s",
                  "pid " + std::to_string(pid));
    }
  }
}

std::string control_socket_of(pid_t pid) { return path_in(runtime_folder(), pid); }

void remove_dead_socket(const std::string& path) {
  sockaddr_un address;
  if (!set_address(path, &address)) return;
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
}

}  // namespace fleet
