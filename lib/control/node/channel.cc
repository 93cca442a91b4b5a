#include "node/channel.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// A node of a thousand ranks with the longest environments stays far below.
constexpr uint32_t kMaxMessage = 1u << 30;
constexpr uint32_t kMaxRequest = 4096;

template <typename Message>
bool take(std::string& buffer, Message* message, uint32_t most = kMaxMessage) {
  uint32_t size = 0;
  if (buffer.size() < sizeof size) return false;
  std::memcpy(&size, buffer.data(), sizeof size);
  FLEET_CHECK(size <= most, "a message of the launcher's socket is too large");
  if (buffer.size() - sizeof size < size) return false;
  FLEET_CHECK(message->ParseFromArray(buffer.data() + sizeof size, static_cast<int>(size)),
              "the bytes on the launcher's socket are not a message");
  validate(message);
  buffer.erase(0, sizeof size + size);
  return true;
}

}  // namespace

std::string frame(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  FLEET_CHECK(bytes <= kMaxMessage, "a message for the launcher's socket is too large");
  const auto size = static_cast<uint32_t>(bytes);
  std::string framed(sizeof size + size, '\0');
  std::memcpy(framed.data(), &size, sizeof size);
  message.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(framed.data() + sizeof size));
  return framed;
}

bool take_frame(std::string& buffer, wire::GuardianCommand* command) {
  return take(buffer, command);
}
bool take_frame(std::string& buffer, wire::GuardianEvent* event) { return take(buffer, event); }
bool take_frame(std::string& buffer, wire::ControlRequest* request) {
  return take(buffer, request, kMaxRequest);
}
bool take_frame(std::string& buffer, wire::ControlReply* reply) { return take(buffer, reply); }

ByteStream::ByteStream(EventLoop& loop, UniqueFd socket,
                       std::function<void(std::string_view)> on_bytes,
                       std::function<void()> on_closed)
    : socket_(loop, std::move(socket)),
      on_bytes_(std::move(on_bytes)),
      on_closed_(std::move(on_closed)) {
  read();
}

void ByteStream::read() {
  socket_.read_some(chunk_, [this](std::error_code error, size_t n) {
    if (error) {
      closed_ = true;
      return on_closed_();
    }
    on_bytes_(std::string_view(chunk_, n));
    if (socket_.is_open()) read();
  });
}

void ByteStream::send(std::string bytes) {
  if (closed_) return;
  const bool idle = queue_.empty();
  const size_t size = bytes.size();
  if (!queue_.push(std::move(bytes), size)) {
    ::shutdown(socket_.get(), SHUT_RDWR);  // the reading side reports it
  } else if (idle) {
    write();
  }
}

void ByteStream::write() {
  while (!queue_.empty()) {
    const std::string_view rest = std::string_view(queue_.front()).substr(written_);
    const ssize_t n = ::send(socket_.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN) {
      return socket_.wait(LoopDescriptor::Event::kWritable, [this](std::error_code) { write(); });
    }
    if (n < 0 && errno == EINTR) continue;
    written_ += static_cast<size_t>(std::max<ssize_t>(n, 0));
    if (n >= 0 && written_ < queue_.front().size()) continue;
    n < 0 ? queue_.drop_after(0) : queue_.pop();  // the reading side reports a failure
    written_ = 0;
  }
  if (on_sent_) std::exchange(on_sent_, nullptr)();
}

void ByteStream::when_sent(std::function<void()> callback) {
  if (closed_ || queue_.empty()) return callback();
  on_sent_ = std::move(callback);
}

void ByteStream::close() {
  closed_ = true;
  socket_.close();
}

}  // namespace fleet
