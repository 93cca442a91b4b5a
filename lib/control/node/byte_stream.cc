#include "node/byte_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace fleet {

namespace asio = boost::asio;

ByteStream::ByteStream(asio::io_context& loop, UniqueFd socket,
                       std::function<void(std::string_view)> on_bytes,
                       std::function<void()> on_closed)
    : socket_(loop, asio::local::stream_protocol(), socket.release()),
      on_bytes_(std::move(on_bytes)),
      on_closed_(std::move(on_closed)) {
  read();
}

void ByteStream::read() {
  socket_.async_read_some(asio::buffer(chunk_), [this](boost::system::error_code error, size_t n) {
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

void ByteStream::send(std::string_view bytes) {
  if (closed_) return;
  queued_ += bytes;
  if (writing_.empty()) write();
}

void ByteStream::write() {
  writing_.swap(queued_);
  asio::async_write(socket_, asio::buffer(writing_),
                    [this](boost::system::error_code error, size_t) {
                      if (error == asio::error::operation_aborted) return;
                      writing_.clear();
                      if (error) queued_.clear();  // the reading side reports the error
                      if (!queued_.empty()) return write();
                      if (on_sent_) std::exchange(on_sent_, nullptr)();
                    });
}

void ByteStream::when_sent(std::function<void()> callback) {
  if (closed_ || writing_.empty()) return callback();
  on_sent_ = std::move(callback);
}

void ByteStream::close() {
  closed_ = true;
  boost::system::error_code ignored;
  socket_.close(ignored);
}

}  // namespace fleet
