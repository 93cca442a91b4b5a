// A file descriptor whose events an EventLoop waits for.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "transport/event_loop.h"

namespace fleet {

// Owns the descriptor. Several waits may be pending at once. A handler is called once; it gets an
// error if the kernel cannot watch the descriptor (epoll refuses files, for example). No handler is
// called after close() or destruction. A handler may own this object, or destroy it. Not
// thread-safe: use it in the loop's thread, or while the loop does not run.
class LoopDescriptor {
 public:
  using Handler = std::function<void(std::error_code error)>;
  enum class Event { kReadable, kWritable, kError };

  explicit LoopDescriptor(EventLoop& loop) : loop_(loop) {}
  // Throws kIo.
  LoopDescriptor(EventLoop& loop, UniqueFd fd) : loop_(loop) { assign(std::move(fd)); }
  ~LoopDescriptor();
  LoopDescriptor(const LoopDescriptor&) = delete;
  LoopDescriptor& operator=(const LoopDescriptor&) = delete;

  // Closes the previous one. Throws kIo if the kernel has no room for another one to wait for.
  void assign(UniqueFd fd);
  bool is_open() const { return state_ != nullptr; }
  int get() const;  // -1: it is not open
  void close();
  // Stops waiting and hands the descriptor back, open. It must be open.
  UniqueFd release();

  // These two need an open descriptor.
  void wait(Event event, Handler handler);
  // Makes the descriptor non-blocking and reads the available bytes, at least one; the end of the
  // data is an error. `buffer` must live until the handler runs, or until the descriptor is closed.
  void read_some(std::span<char> buffer,
                 std::function<void(std::error_code error, size_t size)> handler);

 private:
  struct State;

  EventLoop& loop_;
  std::shared_ptr<State> state_;  // nullptr: not open
};

}  // namespace fleet
