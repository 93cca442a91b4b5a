// Calls functions when their time has come: one thread for all of a process, which may hold
// thousands.
#pragma once

#include <chrono>
#include <functional>

namespace fleet {

class Ticker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // fire() says when it wants to be called next; it runs first as soon as due_by() asked for. It is
  // to be quick: others wait meanwhile.
  explicit Ticker(std::function<Time()> fire) : fire_(std::move(fire)) {}
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  // Not later than `time`. Any thread, also within fire().
  void due_by(Time time);
  // Afterwards fire() does not run any more; not from within fire(). Idempotent.
  void stop();

 private:
  class Thread;

  std::function<Time()> fire_;
  // Under the lock of the thread.
  Time due_ = Time::max();
  bool stopped_ = false;
};

}  // namespace fleet
