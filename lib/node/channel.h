// Messages over the socket pair between the launcher and its guardian, in one Asio loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/file.h"
#include "node/wire.h"

namespace fleet {

// Not thread safe: everything happens in the loop's thread.
class Channel {
 public:
  // `on_message` for each message, `on_closed` once when the other end is gone.
  Channel(boost::asio::io_context& loop, UniqueFd socket,
          std::function<void(WireMessage)> on_message, std::function<void()> on_closed);
  // Sent in order. Dropped where the other end is gone: on_closed tells.
  void send(const WireMessage& message);
  // Calls back once everything sent so far is out, or the other end is gone.
  void when_sent(std::function<void()> callback);

 private:
  void read();
  void write();

  boost::asio::local::stream_protocol::socket socket_;
  std::function<void(WireMessage)> on_message_;
  std::function<void()> on_closed_, on_sent_;
  std::string incoming_, queued_, writing_;
  char chunk_[16384];
  bool closed_ = false;
};

}  // namespace fleet
