#include "rendezvous/ticker.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <exception>
#include <future>

#include "base/log.h"
#include "base/thread.h"

namespace fleet {
namespace {

namespace asio = boost::asio;

// Starts with the first ticker and lives as long as the process, so it is never destroyed while in
// use.
struct Loop {
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> keep{context.get_executor()};
  Thread thread{"ticker", [this] { context.run(); }};

  static Loop& one() {
    static Loop* const loop = new Loop;  // reachable: leak checkers see no leak
    return *loop;
  }
};

}  // namespace

// Used in the loop's thread only.
struct Ticker::State : std::enable_shared_from_this<State> {
  explicit State(std::function<Time()> function)
      : fire(std::move(function)), timer(Loop::one().context) {}

  void due_by(Time time) {
    if (stopped || time >= due) return;
    due = time;
    timer.expires_at(time);
    timer.async_wait([self = shared_from_this()](boost::system::error_code error) {
      if (!error && !self->stopped) self->run();
    });
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
  asio::steady_timer timer;
  Time due = Time::max();
  bool stopped = false;
};

Ticker::Ticker(std::function<Time()> fire) : state_(std::make_shared<State>(std::move(fire))) {}

void Ticker::due_by(Time time) {
  asio::post(Loop::one().context, [state = state_, time] { state->due_by(time); });
}

void Ticker::stop() {
  if (Loop::one().context.get_executor().running_in_this_thread()) return state_->stop();
  std::promise<void> stopped;
  asio::post(Loop::one().context, [&] {
    state_->stop();
    stopped.set_value();
  });
  stopped.get_future().wait();
}

}  // namespace fleet
