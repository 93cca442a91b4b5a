// A socket next to a running fleetrun's record, for commands on this node (`fleetrun stacks JOB`,
// `fleetrun stop JOB`, fleetd).
// Only its user can connect: the folder is 0700.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/sudden_end.h"
#include "node/channel.h"
#include "node/process_handle.h"
#include "rendezvous/types.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/tcp_listener.h"

namespace fleet {

// A connection carries one ControlRequest and its ControlReply, framed as in channel.h. Not
// thread-safe: everything happens in the loop's thread. If it cannot listen, the job still runs;
// the reason is logged at debug level.
class ControlSocket {
 public:
  using Reply = std::function<void(const wire::ControlReply& reply)>;  // once, now or later
  using OnRequest = std::function<void(const wire::ControlRequest& request, Reply reply)>;

  ControlSocket(EventLoop& loop, OnRequest on_request);
  ~ControlSocket();  // removes the socket
  // Call it now and then: listens again if the socket has vanished.
  void keep();

 private:
  void listen();
  void answer(uint64_t id, const wire::ControlReply& reply);

  struct Client {
    std::unique_ptr<ByteStream> stream;
    std::string incoming;
    bool asked = false;
  };
  void on_bytes(uint64_t id, std::string_view bytes);
  void drop(uint64_t id);

  EventLoop& loop_;
  OnRequest on_request_;
  std::string path_;
  OwnFile file_;                            // at `path_`, while it listens
  std::unique_ptr<LoopListener> listener_;  // nullptr: it cannot listen
  std::map<uint64_t, Client> clients_;
  uint64_t last_ = 0;
};

// Sends a request to the fleetrun of this pid and waits for the answer. Throws kNotFound if it
// cannot be reached or ends, kTimeout if it does not answer, and the error in a reply.
wire::ControlReply send_control_request(pid_t pid, const wire::ControlRequest& request,
                                        int timeout_seconds);

// The same without waiting, for callers with a loop: `done` runs once, in the loop, with the reply
// or the error. Throws kNotFound if the fleetrun cannot be reached.
void send_control_request(EventLoop& loop, pid_t pid, const wire::ControlRequest& request,
                          int timeout_seconds, std::function<void(const wire::ControlReply&)> done);

// Tells this fleetrun to stop its job; does not wait. A fleetrun that has no control socket, or
// none yet, receives signals instead; its own grace time applies then. Resumes a suspended one.
// kNotFound if it has ended.
void stop_launcher(const ProcessHandle& launcher, const wire::StopRequest& request);

// The path of that fleetrun's socket.
std::string control_socket_of(pid_t pid);
// Removes the socket if no process listens on it.
void remove_dead_socket(const std::string& path);
// Removes the sockets of a launcher that has ended. Their names contain its pid.
void remove_sockets_of(pid_t launcher);

}  // namespace fleet
