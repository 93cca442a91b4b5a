#include "transport/event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <boost/system/system_error.hpp>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace fleet {

namespace asio = boost::asio;

namespace {

// Asio's exceptions about descriptors do not name the limit.
template <typename Make>
auto make_in_loop(const char* what, Make make) {
  try {
    return make();
  } catch (const boost::system::system_error& error) {
    throw SystemError(ErrorCode::kIo, what, error.code().value(), {});
  }
}

std::unique_ptr<asio::io_context> make_context() {
  return make_in_loop("cannot create an event loop", [] {
    auto context = std::make_unique<asio::io_context>(1);
    asio::steady_timer timer(*context);  // the first one opens the loop's descriptors
    return context;
  });
}

}  // namespace

EventLoop::EventLoop() : context_(make_context()), gate_(std::make_shared<LoopGate>(*this)) {}
EventLoop::~EventLoop() { gate_->close(); }

size_t EventLoop::run() { return context_->run(); }
size_t EventLoop::run_until_stopped() {
  const auto keep = asio::make_work_guard(*context_);
  return context_->run();
}
size_t EventLoop::run_one() { return context_->run_one(); }
size_t EventLoop::run_for(std::chrono::milliseconds limit) { return context_->run_for(limit); }
size_t EventLoop::run_one_for(std::chrono::milliseconds limit) {
  return context_->run_one_for(limit);
}
size_t EventLoop::poll() { return context_->poll(); }
void EventLoop::stop() { context_->stop(); }
void EventLoop::restart() { context_->restart(); }

void EventLoop::post(std::function<void()> handler) { asio::post(*context_, std::move(handler)); }
bool EventLoop::runs_here() const { return context_->get_executor().running_in_this_thread(); }

void LoopGate::post(std::function<void()> handler) {
  const MutexLock lock(mutex_);
  if (loop_) loop_->post(std::move(handler));
}

void LoopGate::close() {
  const MutexLock lock(mutex_);
  loop_ = nullptr;
}

struct LoopTimer::State {
  asio::steady_timer timer;
  // Counts the waits, because Asio cannot take back a wait whose time has come.
  uint64_t current = 0;
};

LoopTimer::LoopTimer(EventLoop& loop)
    : state_(std::make_shared<State>(State{asio::steady_timer(loop.asio())})) {}

// A handler that still waits does not hold the state.
LoopTimer::~LoopTimer() = default;

void LoopTimer::at(Time time, Handler handler) {
  state_->timer.expires_at(time);
  state_->timer.async_wait([weak = std::weak_ptr(state_), number = ++state_->current,
                            handler = std::move(handler)](boost::system::error_code error) {
    const bool replaced = weak.expired() || weak.lock()->current != number;
    if (!error && !replaced) handler();
  });
}

void LoopTimer::after(std::chrono::steady_clock::duration delay, Handler handler) {
  after(RunningDeadline(delay), std::move(handler));
}

void LoopTimer::after(RunningDeadline deadline, Handler handler) {
  const Time next = deadline.next_look();
  at(next, [this, deadline, handler = std::move(handler)]() mutable {
    if (deadline.passed()) return handler();
    after(deadline, std::move(handler));
  });
}

void LoopTimer::cancel() {
  ++state_->current;
  state_->timer.cancel();
}

struct LoopSignals::State : std::enable_shared_from_this<State> {
  explicit State(EventLoop& loop) : signals(loop.asio()) {}

  void wait() {
    signals.async_wait([weak = weak_from_this()](boost::system::error_code error, int signal) {
      const auto self = weak.lock();
      if (error || !self) return;
      self->wait();
      self->handler(signal);
    });
  }

  asio::signal_set signals;
  std::function<void(int)> handler;
};

LoopSignals::LoopSignals(EventLoop& loop, std::initializer_list<int> signals)
    : state_(make_in_loop("cannot catch signals", [&] { return std::make_shared<State>(loop); })) {
  for (const int signal : signals) add(signal);
}

LoopSignals::~LoopSignals() = default;

void LoopSignals::add(int signal) {
  boost::system::error_code error;
  state_->signals.add(signal, error);
  if (error) {
    throw Error(ErrorCode::kIo, "cannot be caught: " + error.message(),
                "signal " + std::to_string(signal));
  }
}

void LoopSignals::on_signal(std::function<void(int)> handler) {
  state_->handler = std::move(handler);
  state_->wait();
}

}  // namespace fleet
