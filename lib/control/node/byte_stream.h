// Bytes over a local socket in an Asio loop, with a write queue.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class ByteStream {
 public:
  // `on_bytes` receives incoming bytes; `on_closed` runs once when the other end is gone.
  ByteStream(boost::asio::io_context& loop, UniqueFd socket,
             std::function<void(std::string_view)> on_bytes, std::function<void()> on_closed);
  // Sends in order. Drops the bytes if the other end is gone.
  void send(std::string_view bytes);
  // Calls back once all bytes queued so far are sent, or the other end is gone.
  void when_sent(std::function<void()> callback);
  // Closes the socket, which notifies the other end. Drops unsent bytes.
  void close();

 private:
  void read();
  void write();

  boost::asio::local::stream_protocol::socket socket_;
  std::function<void(std::string_view)> on_bytes_;
  std::function<void()> on_closed_, on_sent_;
  std::string queued_, writing_;
  char chunk_[16384];
  bool closed_ = false;
};

}  // namespace fleet
