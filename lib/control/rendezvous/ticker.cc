#include "rendezvous/ticker.h"

#include <algorithm>
#include <exception>
#include <set>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/thread.h"

namespace fleet {

// Starts with the first ticker and lives as long as the process, so its state is never destroyed
// while in use.
class Ticker::Thread {
 public:
  static Thread& one() {
    static Thread* const thread = new Thread;  // reachable: leak checkers see no leak
    return *thread;
  }

  void due_by(Ticker* ticker, Time time) {
    const MutexLock lock(mutex_);
    schedule(ticker, time);
  }

  void stop(Ticker* ticker) {
    const MutexLock lock(mutex_);
    ticker->stopped_ = true;
    order_.erase({ticker->due_, ticker});
    ticker->due_ = Time::max();
    if (firing_ != ticker) return;
    if (std::this_thread::get_id() == thread_id_) {
      firing_ = nullptr;  // run() does not touch it any more
    } else {
      while (firing_ == ticker) fired_.wait(mutex_);
    }
  }

 private:
  Thread() : thread_("ticker", [this] { run(); }) {}

  void schedule(Ticker* ticker, Time time) FLEET_REQUIRES(mutex_) {
    if (ticker->stopped_ || time >= ticker->due_) return;
    order_.erase({ticker->due_, ticker});
    ticker->due_ = time;
    order_.emplace(time, ticker);
    if (order_.begin()->second == ticker) changed_.notify_one();
  }

  // An exception in one ticker must not stop the others.
  static Time fire(const std::function<Time()>& function) {
    try {
      return function();
    } catch (const std::exception& error) {
      spdlog::error("internal error: {}: please report this bug", error.what());
      return std::chrono::steady_clock::now() + std::chrono::seconds(1);
    }
  }

  void run() {
    const MutexLock lock(mutex_);
    thread_id_ = std::this_thread::get_id();
    for (;;) {
      if (order_.empty()) {
        changed_.wait(mutex_);
        continue;
      }
      const auto [due, ticker] = *order_.begin();
      if (std::chrono::steady_clock::now() < due) {
        changed_.wait_until(mutex_, due);
        continue;
      }
      order_.erase(order_.begin());
      ticker->due_ = Time::max();
      firing_ = ticker;
      const std::function<Time()> function = ticker->fire_;  // outlives the ticker
      Time next;
      {
        const MutexUnlock unlock(mutex_);
        next = fire(function);
      }
      const bool alive = std::exchange(firing_, nullptr) == ticker;
      if (alive && next != Time::max()) schedule(ticker, next);
      fired_.notify_all();
    }
  }

  CondVar changed_, fired_;
  std::set<std::pair<Time, Ticker*>> order_ FLEET_GUARDED_BY(mutex_);
  Ticker* firing_ FLEET_GUARDED_BY(mutex_) = nullptr;
  std::thread::id thread_id_ FLEET_GUARDED_BY(mutex_);
  fleet::Thread thread_;  // last: it uses the rest
};

void Ticker::due_by(Time time) { Thread::one().due_by(this, time); }
void Ticker::stop() { Thread::one().stop(this); }

}  // namespace fleet
