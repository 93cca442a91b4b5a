#include "rendezvous/ticker.h"

#include <algorithm>

namespace fleet {

Ticker::Ticker(const std::string& name, std::function<Time()> fire)
    : fire_(std::move(fire)), thread_(name, [this] { run(); }) {}

void Ticker::run() {
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    if (due_ == Time::max()) {
      changed_.wait(lock);
      continue;
    }
    if (std::chrono::steady_clock::now() < due_) {
      changed_.wait_until(lock, due_);
      continue;
    }
    due_ = Time::max();
    lock.unlock();
    const Time next = fire_();
    lock.lock();
    due_ = std::min(due_, next);
  }
}

void Ticker::due_by(Time time) {
  std::lock_guard lock(mutex_);
  if (time >= due_) return;
  due_ = time;
  changed_.notify_one();
}

void Ticker::stop() {
  {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
}

}  // namespace fleet
