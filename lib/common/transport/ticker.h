// Calls functions at their due times: one thread per process serves all tickers, possibly
// thousands.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace fleet {

class Ticker {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // fire() returns its next due time; it runs first as soon as due_by() asks for it. It must be
  // quick, because others wait for it.
  explicit Ticker(std::function<Time()> fire);
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  // Runs fire() at `time` or earlier. Callable from any thread, also within fire().
  void due_by(Time time);
  // fire() does not run after stop() returns. Within fire() it does not wait for its end, so that
  // fire() may even destroy the ticker. Idempotent.
  void stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace fleet
