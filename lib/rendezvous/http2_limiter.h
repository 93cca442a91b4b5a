// Reads what goes over one HTTP/2 connection beside its server, and says when a client sends what
// no gRPC client of ours does: endless headers, streams that are reset at once, noise. Frames:
// RFC 9113; messages in them: gRPC over HTTP/2 (a byte of flags, a length of four, the message).
// Pure: no sockets, and the time is passed in.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "rendezvous/token_bucket.h"

namespace fleet {

struct Http2Limits {
  size_t header_bytes = 16 << 10;  // of a HEADERS frame with its CONTINUATIONs
  size_t frame_bytes = 16 << 10;   // of any; the server announces no more
  size_t message_bytes = (16 << 20) + 5;
  TokenBucket::Rate resets{1'000, 100};       // of streams, by the client
  TokenBucket::Rate controls{10'000, 2'000};  // frames of all other kinds but HEADERS and DATA
};

// Not thread-safe.
class Http2Limiter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  Http2Limiter(const Http2Limits& limits, Time now);

  struct Read {
    size_t taken = 0;  // bytes; fewer than there were: the next would open a stream too many
    const char* wrong = nullptr;  // what is wrong with them: then the connection is to be closed
  };
  // Bytes in any pieces, each once: what was not taken is to be given again. may_open: streams.
  Read client_sent(std::string_view bytes, size_t may_open, Time now);
  void server_sent(std::string_view bytes);

  bool greeted() const { return greeting_ == 0; }          // the client preface has come
  size_t open_streams() const { return streams_.size(); }  // which neither side has ended
  uint64_t opened() const { return opened_; }              // in all
  size_t partial_bytes() const { return partial_; }        // of messages that are not complete
  // When the oldest of them began; nothing where all are complete.
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
    bool begin(std::string_view* bytes);  // true: a frame has begun
  };
  struct Stream {
    uint8_t prefix[5];
    size_t have = 0;     // of the prefix
    size_t left = 0;     // of the message
    size_t partial = 0;  // bytes of it that have come, with its prefix
    Time began;
  };

  bool opens_stream() const;
  const char* begin_frame(Time now);
  const char* begin_headers();
  void data(std::string_view payload, Time now);
  void end_stream(uint32_t id);

  const Http2Limits limits_;
  TokenBucket resets_, controls_;
  size_t greeting_;  // bytes of the preface that are missing
  Reader client_, server_;
  std::unordered_map<uint32_t, Stream> streams_;
  uint32_t last_stream_ = 0;
  uint32_t headers_of_ = 0;  // a block that is not complete; 0: none
  size_t header_bytes_ = 0;  // of it
  uint64_t opened_ = 0;
  size_t partial_ = 0;
};

}  // namespace fleet
