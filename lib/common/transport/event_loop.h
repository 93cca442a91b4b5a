// The loop of a thread that waits for timers, signals, descriptors (loop_descriptor.h) and work of
// other threads. Boost.Asio does it, behind these classes: its headers and the code of its handlers
// would take much of the time to compile each file that waits for something.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>

#include "base/mutex.h"
#include "base/running_clock.h"

namespace boost::asio {
class io_context;
}  // namespace boost::asio

namespace fleet {

class LoopGate;

// Calls handlers in the thread that runs it; an exception of a handler leaves run(). One thread may
// run it at a time. Destroys, without a call, the handlers that are left when it is destroyed, and
// what they own. It must outlive the timers, signals and descriptors that use it, except for those
// that its handlers own.
class EventLoop {
 public:
  EventLoop();
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Each returns the number of handlers that it has called, and returns early after stop().
  size_t run();                // until nothing is awaited
  size_t run_until_stopped();  // also while nothing is awaited: other threads may still post
  size_t run_one();            // until one handler has run
  size_t run_for(std::chrono::milliseconds limit);
  size_t run_one_for(std::chrono::milliseconds limit);
  size_t poll();  // the handlers that are due, without waiting
  // The run in progress, or else the next one, ends. Callable from any thread.
  void stop();
  void restart();  // after stop(), or after a run has left nothing to wait for

  // Calls `handler` later, in the order of the calls. Callable from any thread.
  void post(std::function<void()> handler);
  bool runs_here() const;  // whether the caller is one of its handlers

  // For threads that may outlive the loop.
  const std::shared_ptr<LoopGate>& gate() const { return gate_; }

  // For the few files that use Asio's sockets; they include its headers.
  boost::asio::io_context& asio() { return *context_; }

 private:
  const std::unique_ptr<boost::asio::io_context> context_;
  const std::shared_ptr<LoopGate> gate_;
};

// Posts to a loop that may end before its holders do. Thread-safe.
class LoopGate {
 public:
  explicit LoopGate(EventLoop& loop) : loop_(&loop) {}
  LoopGate(const LoopGate&) = delete;
  LoopGate& operator=(const LoopGate&) = delete;
  // As EventLoop::post(); does nothing once the loop is being destroyed.
  void post(std::function<void()> handler);

 private:
  friend class EventLoop;
  void close();

  Mutex mutex_;
  EventLoop* loop_ FLEET_GUARDED_BY(mutex_);  // nullptr: closed
};

// Calls a handler at a time of the steady clock, or after a delay. A delay is time in which this
// process runs (RunningDeadline): a suspended launcher does not find its limits expired. Waits for
// one time at once: the next at() or after() replaces the last. The handler does not run after it
// is replaced, after cancel(), or after the timer is destroyed, even if its time has come before.
// It may own the timer, or destroy it. Not thread-safe: use it in the loop's thread, or while the
// loop does not run.
class LoopTimer {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Handler = std::function<void()>;

  explicit LoopTimer(EventLoop& loop);
  ~LoopTimer();
  LoopTimer(const LoopTimer&) = delete;
  LoopTimer& operator=(const LoopTimer&) = delete;

  void at(Time time, Handler handler);
  void after(std::chrono::steady_clock::duration delay, Handler handler);
  void cancel();

 private:
  struct State;
  void after(RunningDeadline deadline, Handler handler);
  const std::shared_ptr<State> state_;
};

// Calls a handler for each signal that this process receives; equal ones may merge, as always with
// signals. Not thread-safe: use it in the loop's thread, or while the loop does not run.
class LoopSignals {
 public:
  explicit LoopSignals(EventLoop& loop, std::initializer_list<int> signals = {});
  ~LoopSignals();  // restores the signals' default actions
  LoopSignals(const LoopSignals&) = delete;
  LoopSignals& operator=(const LoopSignals&) = delete;

  // Catches this signal too. Throws kIo if it cannot be caught.
  void add(int signal);
  // Call it once. The signals since add() count too. `handler` does not run after the destruction.
  void on_signal(std::function<void(int signal)> handler);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace fleet
