#include "transport/ticker.h"

#include <exception>
#include <future>

#include "base/log.h"
#include "transport/loop_thread.h"

namespace fleet {
namespace {

EventLoop& the_loop() {
  static LoopThread* const one = new LoopThread("ticker");  // reachable: leak checkers see no leak
  return one->loop;
}

}  // namespace

// Used in the loop's thread only.
struct Ticker::State : std::enable_shared_from_this<State> {
  explicit State(std::function<Time()> function) : fire(std::move(function)), timer(the_loop()) {}

  void due_by(Time time) {
    if (stopped || time >= due) return;
    due = time;
    timer.at(time, [self = shared_from_this()] { self->run(); });
  }
  void run() {
    due = Time::max();
    Time next = Time::max();
    try {
      next = fire();
    } catch (const std::exception& error) {  // must not stop the other tickers
      spdlog::error("internal error: {}: please report this bug", error.what());
      next = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    }
    if (next != Time::max()) due_by(next);
  }
  void stop() {
    stopped = true;
    timer.cancel();
  }

  const std::function<Time()> fire;
  LoopTimer timer;
  Time due = Time::max();
  bool stopped = false;
};

Ticker::Ticker(std::function<Time()> fire) : state_(std::make_shared<State>(std::move(fire))) {}

void Ticker::due_by(Time time) {
  the_loop().post([state = state_, time] { state->due_by(time); });
}

void Ticker::stop() {
  if (the_loop().runs_here()) return state_->stop();
  std::promise<void> stopped;
  the_loop().post([&] {
    state_->stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

}  // namespace fleet
