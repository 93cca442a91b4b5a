// Standard output or standard error, written without blocking the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// Reopens the pipe or terminal behind `fd` for non-blocking writes; -1 if it is something else or
// cannot be reopened. The shared file description stays unchanged.
int open_nonblocking(int fd);

// Whether both refer to the same terminal, pipe or file.
bool same_destination(int fd, int other);

// A stopped terminal or a slow reader must not keep the guardian from killing. Lines of at most
// PIPE_BUF bytes are written atomically, so other processes' output appears between lines.
class Console {
 public:
  Console(EventLoop& loop, int fd);

  // If true, whole lines are dropped while too much output waits, and a line reports their number.
  // Otherwise (the default) full() tells the producer to pause until on_drained.
  void drop_when_full(bool drop) { drops_ = drop; }
  // For that line: where the user can read them instead.
  void set_log_hint(std::string where) { log_hint_ = std::move(where); }

  void write(std::string_view output);
  bool full() const { return !drops_ && waiting() > kFull; }
  bool idle() const { return waiting() == 0 && !skipping_; }
  // Whether lines written now are dropped; count_dropped() then counts them instead.
  bool drops() const { return skipping_ && skipped_whole_ && waiting() >= kFull / 2; }
  void count_dropped(int64_t lines, int64_t bytes) {
    skipped_lines_ += lines;
    skipped_bytes_ += bytes;
  }
  bool is_terminal() const { return terminal_; }
  size_t waiting() const { return waiting_.size() - written_; }  // bytes
  int64_t taken() const { return taken_; }                       // bytes written
  // Called when it is no longer full, and when it has become idle.
  void on_drained(std::function<void()> callback) { on_drained_ = std::move(callback); }

 private:
  static constexpr size_t kFull = 1 << 20;
  std::string_view skip(std::string_view output);
  void report_skipped();
  void pump();
  size_t next_piece() const;
  bool write_piece();
  void give_up();

  LoopDescriptor out_;
  std::string waiting_, log_hint_;
  size_t written_ = 0;  // of waiting_
  int64_t taken_ = 0;
  // pollable_: epoll accepts it. own_: writes never block.
  bool terminal_ = false, pollable_ = true, own_ = false;
  bool waits_ = false, broken_ = false;
  bool drops_ = false, skipping_ = false;
  // The written, or skipped, text ends with a newline.
  bool shown_whole_ = true, skipped_whole_ = true;
  int64_t skipped_lines_ = 0, skipped_bytes_ = 0;
  std::function<void()> on_drained_;
};

}  // namespace fleet
