// A connection to a server that is open to everyone (--insecure). The client's bytes pass an
// Http2Limiter before gRPC sees them. A client that exceeds its share must wait; a client that
// violates the limits is disconnected.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "rendezvous/client_budgets.h"
#include "rendezvous/event_loop.h"
#include "rendezvous/http2_limiter.h"
#include "rendezvous/loop_descriptor.h"

namespace fleet {

// Everything happens in the loop's thread.
class ScreenedConnection : public std::enable_shared_from_this<ScreenedConnection> {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Shared by all connections of a server.
  struct Server {
    EventLoop& loop;
    Http2Limits limits;
    StreamBudget streams;
    std::function<void(UniqueFd)> hand_over;  // gRPC's end, once the client has sent its preface
    // Called once per connection. reason: what the client did wrong; nullptr: nothing.
    std::function<void(ScreenedConnection&, const char* reason)> on_end;
    // Called for a client with more streams than allowed: its connection must be closed.
    std::function<void(const StreamBudget::Excess&)> on_excess;
    std::chrono::milliseconds handshake_timeout{30'000};
    std::chrono::milliseconds message{10'000};  // from the first byte of a message to its last
  };

  // peer: identifies the connection in on_end(). Call begin() once a shared_ptr owns it.
  ScreenedConnection(Server& server, UniqueFd client, std::string address, std::string peer);
  void begin();
  // reason: as in on_end().
  void close(const char* reason);
  // Closes the connection if it exceeds a time limit. Call it periodically.
  void check(Time now);

  const std::string& address() const { return address_; }
  const std::string& peer() const { return peer_; }

 private:
  using Event = LoopDescriptor::Event;
  using Then = void (ScreenedConnection::*)();

  void proceed();  // waits for the next possible event
  void wait(LoopDescriptor& descriptor, Event event, bool* waiting, Then then);
  void read_client();
  void read_server();
  void write_client();
  void write_server();
  bool open_server_side();
  void account();  // updates the counts of streams and messages
  void go_on_reading(Time now);
  void wait_for(std::chrono::milliseconds pause);
  void take(std::string_view bytes);

  Server& server_;
  const std::string address_, peer_;
  LoopDescriptor client_, grpc_;
  LoopTimer pause_;
  Http2Limiter limiter_;
  std::string held_;                 // bytes that the client may not send yet
  std::string to_grpc_, to_client_;  // bytes that the other side has not accepted yet
  uint64_t opened_ = 0;              // streams counted so far
  Time began_;
  bool client_readable_ = false, client_writable_ = false, grpc_readable_ = false,
       grpc_writable_ = false, pausing_ = false;  // pending waits
  bool grpc_ended_ = false, ended_ = false;
};

}  // namespace fleet
