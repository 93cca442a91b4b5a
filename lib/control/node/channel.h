// Messages over the socket pair between the launcher and its guardian, in one Asio loop.
#pragma once

#include <functional>
#include <string>

#include "node/byte_stream.h"
#include "node/wire.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class Channel {
 public:
  // `on_message` receives each message; `on_closed` runs once when the other end is gone.
  Channel(boost::asio::io_context& loop, UniqueFd socket,
          std::function<void(WireMessage)> on_message, std::function<void()> on_closed);
  // Sends in order. Drops the message if the other end is gone, which on_closed reports.
  void send(const WireMessage& message) { stream_.send(encode(message)); }
  // Closes the socket, which notifies the other end. Drops unsent messages.
  void close() { stream_.close(); }

 private:
  std::function<void(WireMessage)> on_message_;
  std::string incoming_;
  ByteStream stream_;
};

}  // namespace fleet
