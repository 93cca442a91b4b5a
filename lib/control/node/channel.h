// Messages over a launcher's local sockets, in one loop: to its guardian a GuardianCommand,
// from it a GuardianEvent; on the control socket a ControlRequest and its ControlReply
// (proto/control.proto).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "transport/bounded_queue.h"
#include "transport/control_messages.h"
#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread. Its callbacks must not destroy it.
class ByteStream {
 public:
  // `on_bytes` receives incoming bytes; `on_closed` runs once when the other end is gone.
  ByteStream(EventLoop& loop, UniqueFd socket, std::function<void(std::string_view)> on_bytes,
             std::function<void()> on_closed);
  // Sends in order. Drops the bytes if the other end is gone. Closes the connection, which
  // on_closed reports, if the other end does not read (bounded_queue.h).
  void send(std::string bytes);
  // Calls back once all bytes queued so far are sent, or the other end is gone.
  void when_sent(std::function<void()> callback);
  // Closes the socket, which notifies the other end. Drops unsent bytes.
  void close();

 private:
  void read();
  void write();

  LoopDescriptor socket_;
  std::function<void(std::string_view)> on_bytes_;
  std::function<void()> on_closed_, on_sent_;
  BoundedQueue<std::string> queue_;  // the first is being written
  size_t written_ = 0;               // bytes of the first
  char chunk_[16384];
  bool closed_ = false;
};

// The bytes of one message after a four-byte length. Throws kInternal if it is too large.
std::string frame(const google::protobuf::MessageLite& message);
// Takes one whole message off the front of `buffer`; false if it holds none yet. Throws kInternal
// if the bytes are not a message or too many, and what validate() throws.
bool take_frame(std::string& buffer, wire::GuardianCommand* command);
bool take_frame(std::string& buffer, wire::GuardianEvent* event);
bool take_frame(std::string& buffer, wire::ControlRequest* request);
bool take_frame(std::string& buffer, wire::ControlReply* reply);

// One end of the socket pair. Not thread-safe: everything happens in the loop's thread.
template <typename Sent, typename Received>
class Channel {
 public:
  // `on_message` receives each message; `on_closed` runs once when the other end is gone.
  Channel(EventLoop& loop, UniqueFd socket, std::function<void(Received)> on_message,
          std::function<void()> on_closed)
      : on_message_(std::move(on_message)),
        stream_(
            loop, std::move(socket),
            [this](std::string_view bytes) {
              incoming_ += bytes;
              Received message;
              while (take_frame(incoming_, &message)) on_message_(std::move(message));
            },
            std::move(on_closed)) {}
  // Sends in order. Drops the message if the other end is gone, which on_closed reports.
  void send(const Sent& message) { stream_.send(frame(message)); }
  // Closes the socket, which notifies the other end. Drops unsent messages.
  void close() { stream_.close(); }

 private:
  std::function<void(Received)> on_message_;
  std::string incoming_;
  ByteStream stream_;
};

}  // namespace fleet
