// Calls that may block for a while: the thread of the tickers, which thousands share, must not.
#pragma once

#include <functional>
#include <memory>

namespace fleet {

// One thread per process makes the calls of all, one after the other. Thread-safe.
class Background {
 public:
  Background();
  ~Background() { stop(); }
  Background(const Background&) = delete;

  // Returns false, and does nothing, while the last call has not ended, or after stop().
  bool run(std::function<void()> call);
  // Waits until no call runs; no other begins. Within a call it does not wait for its end.
  // Idempotent.
  void stop();

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace fleet
