// Standard output, written without ever blocking the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <string>
#include <string_view>

namespace fleet {

// A terminal that is stopped, or a reader that is slow, must not keep the guardian from killing.
// The description is shared with whoever started us, so it cannot be made non-blocking: a pipe or
// terminal is written in pieces that fit when it says it can take some, a file at once.
class Console {
 public:
  Console(boost::asio::io_context& loop, int fd);
  void write(std::string_view output);
  // True while more waits than should be kept: whoever feeds it pauses until on_room.
  bool full() const { return waiting_.size() - written_ > kFull; }
  bool idle() const { return waiting_.size() == written_; }
  // Called when it is no longer full, and when it has become idle.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }

 private:
  static constexpr size_t kFull = 1 << 20;
  void pump();
  bool write_piece();
  void forget();  // what waits

  boost::asio::posix::stream_descriptor out_;
  std::string waiting_;
  size_t written_ = 0;  // of waiting_
  bool pollable_ = true, waits_ = false, broken_ = false;
  std::function<void()> on_room_;
};

}  // namespace fleet
