// Parses the traffic of one HTTP/2 connection, as its server does, and reports behaviour that our
// gRPC clients never show: endless headers, streams that are reset at once, noise. Frames: RFC
// 9113. Messages in them: gRPC over HTTP/2 (one byte of flags, four bytes of length, the message).
// Pure: no sockets, and the time is an argument.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "rendezvous/client_budgets.h"

namespace fleet {

struct Http2Limits {
  size_t header_bytes = 16 << 10;  // of a HEADERS frame with its CONTINUATIONs
  size_t frame_bytes = 16 << 10;   // of any frame; the server announces this limit
  size_t message_bytes = (16 << 20) + 5;
  TokenBucket::Rate resets{1'000, 100};       // of streams, by the client
  TokenBucket::Rate controls{10'000, 2'000};  // all frames except HEADERS and DATA
};

// Not thread-safe.
class Http2Limiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Http2Limiter(const Http2Limits& limits, Time now);

  struct Read {
    size_t consumed = 0;  // bytes consumed; fewer than given: the next would exceed may_open
    const char* error = nullptr;  // what is wrong with them; if set, close the connection
  };
  // Takes bytes in pieces of any size, each once. Pass bytes that were not taken again. may_open:
  // the number of streams that may open.
  Read client_sent(std::string_view bytes, size_t may_open, Time now);
  void server_sent(std::string_view bytes);

  bool has_preface() const { return preface_left_ == 0; }  // the client preface has come
  size_t open_streams() const { return streams_.size(); }  // streams that neither side has ended
  uint64_t opened() const { return opened_; }              // in all
  size_t partial_bytes() const { return partial_; }        // of incomplete messages
  // When the oldest incomplete message began; nullopt if all are complete.
  std::optional<Time> oldest_partial() const;

 private:
  struct Frame {
    uint32_t length = 0, stream = 0;
    uint8_t type = 0, flags = 0;
  };
  // Frame headers in a stream of bytes.
  struct Reader {
    uint8_t header[9];
    size_t have = 0;  // of the header
    size_t left = 0;  // of the payload
    Frame frame;
    bool begin(std::string_view* bytes);  // true: a new frame has begun
  };
  struct Stream {
    uint8_t prefix[5];
    size_t have = 0;     // of the prefix
    size_t left = 0;     // of the message
    size_t partial = 0;  // bytes received of it, with its prefix
    Time began;
  };

  bool opens_stream() const;
  const char* begin_frame(Time now);
  const char* begin_headers();
  void data(std::string_view payload, Time now);
  void end_stream(uint32_t id);

  const Http2Limits limits_;
  TokenBucket resets_, controls_;
  size_t preface_left_;  // missing bytes of the preface
  Reader client_, server_;
  std::unordered_map<uint32_t, Stream> streams_;
  uint32_t last_stream_ = 0;
  uint32_t headers_of_ = 0;  // stream of an incomplete header block; 0: none
  size_t header_bytes_ = 0;  // of that block
  uint64_t opened_ = 0;
  size_t partial_ = 0;
};

}  // namespace fleet
