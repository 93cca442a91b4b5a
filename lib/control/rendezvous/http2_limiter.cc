#include "rendezvous/http2_limiter.h"

#include <algorithm>
#include <cstring>

namespace fleet {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

constexpr uint8_t kData = 0, kHeaders = 1, kResetStream = 3, kPushPromise = 5, kGoAway = 7,
                  kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4, kPadded = 8;

constexpr char kTooManyHeaders[] = "its headers are too large";

}  // namespace

bool Http2Limiter::Reader::begin(std::string_view* bytes) {
  const size_t n = std::min(sizeof header - have, bytes->size());
  std::memcpy(header + have, bytes->data(), n);
  bytes->remove_prefix(n);
  have += n;
  if (have < sizeof header) return false;
  have = 0;
  frame.length =
      static_cast<uint32_t>(header[0]) << 16 | static_cast<uint32_t>(header[1]) << 8 | header[2];
  frame.type = header[3];
  frame.flags = header[4];
  frame.stream = (static_cast<uint32_t>(header[5]) << 24 | static_cast<uint32_t>(header[6]) << 16 |
                  static_cast<uint32_t>(header[7]) << 8 | header[8]) &
                 0x7fffffff;
  left = frame.length;
  return true;
}

Http2Limiter::Http2Limiter(const Http2Limits& limits, Time now)
    : limits_(limits),
      resets_(limits.resets, now),
      controls_(limits.controls, now),
      preface_left_(kPreface.size()) {}

Http2Limiter::Read Http2Limiter::client_sent(std::string_view bytes, size_t may_open, Time now) {
  const size_t given = bytes.size();
  if (preface_left_ > 0) {
    const size_t n = std::min(preface_left_, bytes.size());
    if (kPreface.substr(kPreface.size() - preface_left_, n) != bytes.substr(0, n)) {
      return {0, "it does not speak HTTP/2"};
    }
    preface_left_ -= n;
    bytes.remove_prefix(n);
  }
  while (!bytes.empty()) {
    if (client_.left == 0) {
      const std::string_view at = bytes;
      const size_t have = client_.have;
      if (!client_.begin(&bytes)) break;
      if (opens_stream() && may_open-- == 0) {
        client_.have = have;
        client_.left = 0;
        return {given - at.size(), nullptr};
      }
      if (const char* wrong = begin_frame(now)) return {0, wrong};
    }
    const size_t n = std::min(client_.left, bytes.size());
    client_.left -= n;
    const bool ended = client_.left == 0;
    if (client_.frame.type == kData) data(bytes.substr(0, n), now);
    if (ended && client_.frame.type == kResetStream) end_stream(client_.frame.stream);
    bytes.remove_prefix(n);
  }
  return {given, nullptr};
}

bool Http2Limiter::opens_stream() const {
  return client_.frame.type == kHeaders && client_.frame.stream > last_stream_;
}

const char* Http2Limiter::begin_frame(Time now) {
  const Frame& frame = client_.frame;
  if (frame.length > limits_.frame_bytes) return "a frame is too large";
  if ((headers_of_ != 0) != (frame.type == kContinuation) ||
      (headers_of_ != 0 && headers_of_ != frame.stream)) {
    return "its frames are out of order";
  }
  switch (frame.type) {
    case kData:
      return (frame.flags & kPadded) ? "its frames are padded" : nullptr;
    case kHeaders:
    case kContinuation:
      return begin_headers();
    case kResetStream:
      return resets_.take(now) ? nullptr : "it resets too many streams";
    case kPushPromise:
      return "it sends PUSH_PROMISE";
    case kGoAway:
      return nullptr;
    default:
      return controls_.take(now) ? nullptr : "it sends too many control frames";
  }
}

const char* Http2Limiter::begin_headers() {
  const Frame& frame = client_.frame;
  if (frame.type == kHeaders) {
    header_bytes_ = 0;
    if (opens_stream()) {
      if (frame.stream % 2 == 0) return "it opened a stream with a server's number";
      last_stream_ = frame.stream;
      streams_.emplace(frame.stream, Stream{});
      ++opened_;
    }
  }
  // An empty frame costs the server as much as a small one.
  header_bytes_ += std::max<size_t>(frame.length, 64);
  headers_of_ = (frame.flags & kEndHeaders) ? 0 : frame.stream;
  return header_bytes_ > limits_.header_bytes ? kTooManyHeaders : nullptr;
}

void Http2Limiter::data(std::string_view payload, Time now) {
  const auto found = streams_.find(client_.frame.stream);
  if (found == streams_.end()) return;  // already ended: the server drops it
  Stream& stream = found->second;
  while (!payload.empty()) {
    if (stream.left == 0) {
      const size_t n = std::min(sizeof stream.prefix - stream.have, payload.size());
      if (stream.partial == 0) stream.began = now;
      std::memcpy(stream.prefix + stream.have, payload.data(), n);
      payload.remove_prefix(n);
      stream.have += n;
      stream.partial += n;
      partial_ += n;
      if (stream.have < sizeof stream.prefix) return;
      for (size_t i = 1; i < sizeof stream.prefix; ++i) {
        stream.left = stream.left << 8 | stream.prefix[i];
      }
      if (stream.left + sizeof stream.prefix > limits_.message_bytes) stream.left = 0;  // refused
    }
    const size_t n = std::min(stream.left, payload.size());
    payload.remove_prefix(n);
    stream.left -= n;
    stream.partial += n;
    partial_ += n;
    if (stream.left > 0) continue;
    partial_ -= stream.partial;
    stream.partial = stream.have = 0;
  }
}

std::optional<Http2Limiter::Time> Http2Limiter::oldest_partial() const {
  std::optional<Time> oldest;
  if (partial_ == 0) return oldest;
  for (const auto& [id, stream] : streams_) {
    if (stream.partial > 0 && (!oldest || stream.began < *oldest)) oldest = stream.began;
  }
  return oldest;
}

void Http2Limiter::server_sent(std::string_view bytes) {
  while (!bytes.empty()) {
    if (server_.left == 0 && !server_.begin(&bytes)) return;
    const size_t n = std::min(server_.left, bytes.size());
    server_.left -= n;
    bytes.remove_prefix(n);
    if (server_.left > 0) return;
    const Frame& frame = server_.frame;
    const bool last = (frame.type == kData || frame.type == kHeaders) && (frame.flags & kEndStream);
    if (last || frame.type == kResetStream) end_stream(frame.stream);
  }
}

void Http2Limiter::end_stream(uint32_t id) {
  const auto found = streams_.find(id);
  if (found == streams_.end()) return;
  partial_ -= found->second.partial;
  streams_.erase(found);
}

}  // namespace fleet
