// One thread that calls a function whenever its time has come.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

#include "base/thread.h"

namespace fleet {

class Ticker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // fire() says when it wants to be called next; it runs first as soon as due_by() asked for.
  Ticker(const std::string& name, std::function<Time()> fire);
  ~Ticker() { stop(); }
  // Not later than `time`. Any thread, also within fire().
  void due_by(Time time);
  // Joins the thread; not from within fire(). Idempotent.
  void stop();

 private:
  void run();

  std::function<Time()> fire_;
  std::mutex mutex_;
  std::condition_variable changed_;
  Time due_ = Time::max();
  bool stopped_ = false;
  Thread thread_;
};

}  // namespace fleet
