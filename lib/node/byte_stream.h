// Bytes over a local socket, in an Asio loop: what comes, and a queue of what goes.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <string>
#include <string_view>

#include "base/file.h"

namespace fleet {

// Not thread safe: everything happens in the loop's thread.
class ByteStream {
 public:
  // `on_bytes` for whatever comes, `on_closed` once when the other end is gone.
  ByteStream(boost::asio::io_context& loop, UniqueFd socket,
             std::function<void(std::string_view)> on_bytes, std::function<void()> on_closed);
  // Sent in order. Dropped where the other end is gone.
  void send(std::string_view bytes);
  // Calls back once everything sent so far is out, or the other end is gone.
  void when_sent(std::function<void()> callback);
  // The other end hears that this one is gone. What has not been sent yet is dropped.
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
