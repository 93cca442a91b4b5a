// Standard output or standard error, written without ever blocking the loop.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace fleet {

// Opens the pipe or terminal behind `fd` once more, such that writing never blocks; -1 where it is
// something else or cannot be. The description that others share stays as it is.
int open_nonblocking(int fd);

// Whether both lead to the same place: the same terminal, pipe or file.
bool same_place(int fd, int other);

// A terminal that is stopped, or a reader that is slow, must not keep the guardian from killing.
// Lines of at most PIPE_BUF bytes are written whole, so that what other processes write there comes
// between lines.
class Console {
 public:
  Console(boost::asio::io_context& loop, int fd);

  // While more waits than should be kept, whole lines are dropped, and a line says how many;
  // otherwise (the default) full() tells whoever feeds it to pause until on_room.
  void drop_when_full(bool drop) { drops_ = drop; }
  // For that line: where they can be read instead.
  void say_where(std::string where) { where_ = std::move(where); }

  void write(std::string_view output);
  bool full() const { return !drops_ && waiting() > kFull; }
  bool idle() const { return waiting() == 0 && !skipping_; }
  // Whether lines written now are dropped, and, in their place, that so many were.
  bool drops() const { return skipping_ && skipped_whole_ && waiting() >= kFull / 2; }
  void count_dropped(int64_t lines, int64_t bytes) {
    skipped_lines_ += lines;
    skipped_bytes_ += bytes;
  }
  bool is_terminal() const { return terminal_; }
  size_t waiting() const { return waiting_.size() - written_; }  // bytes
  int64_t taken() const { return taken_; }                       // bytes that it has taken so far
  // Called when it is no longer full, and when it has become idle.
  void on_room(std::function<void()> callback) { on_room_ = std::move(callback); }

 private:
  static constexpr size_t kFull = 1 << 20;
  std::string_view skip(std::string_view output);
  void say_skipped();
  void pump();
  size_t next_piece() const;
  bool write_piece();
  void give_up();

  boost::asio::posix::stream_descriptor out_;
  std::string waiting_, where_;
  size_t written_ = 0;  // of waiting_
  int64_t taken_ = 0;
  // Whether epoll takes it; whether it never blocks.
  bool terminal_ = false, pollable_ = true, own_ = false;
  bool waits_ = false, broken_ = false;
  bool drops_ = false, skipping_ = false;
  bool shown_whole_ = true, skipped_whole_ = true;  // what was written, or skipped, ends a line
  int64_t skipped_lines_ = 0, skipped_bytes_ = 0;
  std::function<void()> on_room_;
};

}  // namespace fleet
