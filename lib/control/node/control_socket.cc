#include "node/control_socket.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "node/channel.h"
#include "node/runtime_folder.h"
#include "transport/control_messages.h"

namespace fleet {
namespace {

constexpr int kSendSeconds = 2;

std::string path_in(const std::string& folder, pid_t pid) {
  return folder + "/fleetrun." + std::to_string(pid) + ".sock";
}

// Throws kUsage if the path is too long.
sockaddr_un address_of(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Error(ErrorCode::kUsage, "the path of its socket is too long", path,
                "set FLEET_RUNTIME_DIR to a shorter path, also for the job itself");
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  return address;
}

UniqueFd listening_at(const std::string& path) {
  const sockaddr_un address = address_of(path);
  ::unlink(path.c_str());  // left by a killed process with our pid
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket ||
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(socket.get(), INT_MAX) != 0) {
    throw_errno("cannot listen", path);
  }
  return socket;
}

}  // namespace

ControlSocket::ControlSocket(EventLoop& loop, OnRequest on_request)
    : loop_(loop), on_request_(std::move(on_request)) {
  listen();
}

void ControlSocket::keep() {
  if (!path_.empty() && ::access(path_.c_str(), F_OK) == 0) return;
  listener_.reset();
  file_.remove();
  listen();
}

void ControlSocket::listen() {
  try {
    path_ = path_in(make_runtime_folder(), ::getpid());
    listener_ = std::make_unique<LoopListener>(
        loop_, listening_at(path_), [this](UniqueFd connection, const sockaddr_storage&) {
          const uint64_t id = ++last_;
          clients_[id].stream = std::make_unique<ByteStream>(
              loop_, std::move(connection),
              [this, id](std::string_view bytes) { on_bytes(id, bytes); },
              [this, id] { drop(id); });
        });
    file_ = OwnFile(AT_FDCWD, path_);
    listener_->start();
  } catch (const std::exception& error) {
    spdlog::debug("{}: this fleetrun cannot answer requests: {}", path_, error.what());
    file_.remove();
    path_.clear();
  }
}

ControlSocket::~ControlSocket() = default;

// Deferred, because the client's stream may be the caller.
void ControlSocket::drop(uint64_t id) {
  loop_.post([this, id] { clients_.erase(id); });
}

void ControlSocket::on_bytes(uint64_t id, std::string_view bytes) {
  Client& client = clients_.at(id);
  if (client.asked) return;
  client.incoming += bytes;
  wire::ControlRequest request;
  try {
    if (!take_frame(client.incoming, &request)) return;
  } catch (const Error& error) {  // a fleetrun of another version, perhaps
    spdlog::debug("{}: {}", path_, error.what());
    return drop(id);
  }
  client.asked = true;
  on_request_(request, [this, id](const wire::ControlReply& reply) { answer(id, reply); });
}

void ControlSocket::answer(uint64_t id, const wire::ControlReply& reply) {
  const auto found = clients_.find(id);
  if (found == clients_.end()) return;  // the client has left
  found->second.stream->send(frame(reply));
  found->second.stream->when_sent([this, id] { drop(id); });
}

namespace {

// Connects to the fleetrun of this pid and sends the request.
UniqueFd send_to(pid_t pid, const wire::ControlRequest& request) {
  const std::string path = control_socket_of(pid);
  check_runtime_folder(path.substr(0, path.rfind('/')));
  const sockaddr_un address = address_of(path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Its queue is full only if it has been suspended for long.
  const timeval limit = {kSendSeconds, 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw Error(ErrorCode::kNotFound,
                std::string("cannot reach its fleetrun: ") + std::strerror(errno), path);
  }
  const std::string bytes = frame(request);
  if (::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) < 0) {
    throw_errno("cannot send a request to its fleetrun", path);
  }
  return socket;
}

// Its timer keeps it alive until the answer, or the end of the time for it.
class PendingRequest : public std::enable_shared_from_this<PendingRequest> {
 public:
  PendingRequest(EventLoop& loop, UniqueFd socket, std::string where,
                 std::function<void(const wire::ControlReply&)> done)
      : timer_(loop),
        where_(std::move(where)),
        done_(std::move(done)),
        stream_(
            loop, std::move(socket), [this](std::string_view bytes) { on_bytes(bytes); },
            [this] { fail(ErrorCode::kNotFound, "the job has ended"); }) {}

  void begin(int timeout_seconds) {
    timer_.after(std::chrono::seconds(timeout_seconds),
                 [self = shared_from_this(), timeout_seconds] {
                   self->fail(ErrorCode::kTimeout, "its fleetrun did not answer within " +
                                                       std::to_string(timeout_seconds) + " s");
                 });
  }

 private:
  void on_bytes(std::string_view bytes) {
    incoming_ += bytes;
    wire::ControlReply reply;
    try {
      if (take_frame(incoming_, &reply)) end(reply);
    } catch (const Error& error) {
      fail(error.code(), error.failure());
    }
  }

  void end(const wire::ControlReply& reply) {
    if (!done_) return;
    stream_.close();
    timer_.cancel();
    std::exchange(done_, nullptr)(reply);
  }

  void fail(ErrorCode code, const std::string& what) {
    wire::ControlReply reply;
    *reply.mutable_failure() = to_wire(Error(code, what, where_));
    end(reply);
  }

  LoopTimer timer_;
  const std::string where_;
  std::function<void(const wire::ControlReply&)> done_;
  std::string incoming_;
  ByteStream stream_;
};

}  // namespace

void send_control_request(EventLoop& loop, pid_t pid, const wire::ControlRequest& request,
                          int timeout_seconds,
                          std::function<void(const wire::ControlReply&)> done) {
  std::make_shared<PendingRequest>(loop, send_to(pid, request), "pid " + std::to_string(pid),
                                   std::move(done))
      ->begin(timeout_seconds);
}

wire::ControlReply send_control_request(pid_t pid, const wire::ControlRequest& request,
                                        int timeout_seconds) {
  EventLoop loop;
  wire::ControlReply reply;
  send_control_request(loop, pid, request, timeout_seconds,
                       [&](const wire::ControlReply& answer) { reply = answer; });
  loop.run();
  if (reply.has_failure()) throw from_wire(reply.failure());
  return reply;
}

void stop_launcher(const ProcessHandle& launcher, const wire::StopRequest& request) {
  const pid_t pid = launcher.pid();
  const auto send_signal = [&](int number) {
    if (launcher.signal(number) || !launcher.runs()) return;
    throw Error(ErrorCode::kIo, "cannot send it a signal", "pid " + std::to_string(pid),
                "run the command as the job's user");
  };
  if (!launcher.runs()) {
    throw Error(ErrorCode::kNotFound, "it has ended", "pid " + std::to_string(pid));
  }
  try {
    wire::ControlRequest message;
    *message.mutable_stop() = request;
    send_to(pid, message);
  } catch (const Error& error) {
    spdlog::debug("pid {} is stopped by a signal: {}", pid, error.what());
    send_signal(request.signal());
    // A second signal kills; equal ones may merge.
    if (request.kill()) send_signal(request.signal() == SIGINT ? SIGTERM : SIGINT);
  }
  send_signal(SIGCONT);
}

std::string control_socket_of(pid_t pid) {
  for (const std::string& folder : runtime_folders()) {
    std::string path = path_in(folder, pid);
    if (::access(path.c_str(), F_OK) == 0) return path;
  }
  return path_in(runtime_folder(), pid);
}

void remove_dead_socket(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) return;  // nothing can have made one
  const sockaddr_un address = address_of(path);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int result =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (result != 0 && errno == ECONNREFUSED) ::unlink(path.c_str());
}

void remove_sockets_of(pid_t launcher) {
  const std::string pid = std::to_string(launcher) + ".";
  try {
    for (const std::string& path : files_in_runtime_folders(".sock")) {
      if (path.find(pid, path.rfind('/')) != std::string::npos) remove_dead_socket(path);
    }
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
}

}  // namespace fleet
