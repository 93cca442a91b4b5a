// Messages over a launcher's local sockets, in one Asio loop: to its guardian a GuardianCommand,
// from it a GuardianEvent; on the control socket a ControlRequest and its ControlReply
// (proto/control.proto).
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "node/byte_stream.h"
#include "rendezvous/control_messages.h"

namespace fleet {

// The bytes of one message after a four-byte length. Throws kInternal if it is too large.
std::string frame(const google::protobuf::MessageLite& message);
// Takes one whole message off the front of `buffer`; false if it holds none yet. Throws kInternal
// if the bytes are not a message, or its kind, size or a number in it is impossible.
bool take_frame(std::string& buffer, wire::GuardianCommand* command);
bool take_frame(std::string& buffer, wire::GuardianEvent* event);
bool take_frame(std::string& buffer, wire::ControlRequest* request);
bool take_frame(std::string& buffer, wire::ControlReply* reply);

// One end of the socket pair. Not thread-safe: everything happens in the loop's thread.
template <typename Sent, typename Received>
class Channel {
 public:
  // `on_message` receives each message; `on_closed` runs once when the other end is gone.
  Channel(boost::asio::io_context& loop, UniqueFd socket, std::function<void(Received)> on_message,
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
