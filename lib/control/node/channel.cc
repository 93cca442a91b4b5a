#include "node/channel.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <cstring>
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

namespace asio = boost::asio;
using boost::asio::local::stream_protocol;

struct ByteStream::Socket : stream_protocol::socket {
  using basic_stream_socket::basic_stream_socket;
};

ByteStream::ByteStream(EventLoop& loop, UniqueFd socket,
                       std::function<void(std::string_view)> on_bytes,
                       std::function<void()> on_closed)
    : socket_(std::make_unique<Socket>(loop.asio(), stream_protocol(), socket.release())),
      on_bytes_(std::move(on_bytes)),
      on_closed_(std::move(on_closed)) {
  read();
}

ByteStream::~ByteStream() = default;

void ByteStream::read() {
  socket_->async_read_some(asio::buffer(chunk_), [this](boost::system::error_code error, size_t n) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      closed_ = true;
      on_closed_();
      return;
    }
    on_bytes_(std::string_view(chunk_, n));
    read();
  });
}

void ByteStream::send(std::string bytes) {
  if (closed_) return;
  const bool idle = queue_.empty();
  const size_t size = bytes.size();
  boost::system::error_code ignored;
  if (!queue_.push(std::move(bytes), size)) {
    // The reading side reports it.
    socket_->shutdown(asio::socket_base::shutdown_both, ignored);
  } else if (idle) {
    write();
  }
}

void ByteStream::write() {
  asio::async_write(*socket_, asio::buffer(queue_.front()),
                    [this](boost::system::error_code error, size_t) {
                      if (error == asio::error::operation_aborted) return;
                      error ? queue_.drop_after(0) : queue_.pop();  // the reading side reports it
                      if (!queue_.empty()) return write();
                      if (on_sent_) std::exchange(on_sent_, nullptr)();
                    });
}

void ByteStream::when_sent(std::function<void()> callback) {
  if (closed_ || queue_.empty()) return callback();
  on_sent_ = std::move(callback);
}

void ByteStream::close() {
  closed_ = true;
  boost::system::error_code ignored;
  socket_->close(ignored);
}

}  // namespace fleet
