#include "node/channel.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

namespace fleet {

namespace asio = boost::asio;

Channel::Channel(asio::io_context& loop, UniqueFd socket,
                 std::function<void(WireMessage)> on_message, std::function<void()> on_closed)
    : socket_(loop, asio::local::stream_protocol(), socket.release()),
      on_message_(std::move(on_message)),
      on_closed_(std::move(on_closed)) {
  read();
}

void Channel::read() {
  socket_.async_read_some(asio::buffer(chunk_), [this](boost::system::error_code error, size_t n) {
    if (error == asio::error::operation_aborted) return;
    if (error) {
      closed_ = true;
      on_closed_();
      return;
    }
    incoming_.append(chunk_, n);
    WireMessage message;
    while (decode(incoming_, &message)) on_message_(std::move(message));
    read();
  });
}

void Channel::send(const WireMessage& message) {
  if (closed_) return;
  queued_ += encode(message);
  if (writing_.empty()) write();
}

void Channel::write() {
  writing_.swap(queued_);
  asio::async_write(socket_, asio::buffer(writing_),
                    [this](boost::system::error_code error, size_t) {
                      writing_.clear();
                      if (error) queued_.clear();  // the reading side notices
                      if (!queued_.empty()) return write();
                      if (on_sent_) std::exchange(on_sent_, nullptr)();
                    });
}

void Channel::when_sent(std::function<void()> callback) {
  if (closed_ || writing_.empty()) return callback();
  on_sent_ = std::move(callback);
}

}  // namespace fleet
