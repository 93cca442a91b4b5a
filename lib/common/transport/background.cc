#include "transport/background.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "base/mutex.h"
#include "transport/loop_thread.h"

namespace fleet {
namespace {

EventLoop& the_loop() {
  static LoopThread* const one = new LoopThread("background");  // reachable: not a leak
  return one->loop;
}

}  // namespace

struct Background::State {
  Mutex mutex;
  CondVar changed;
  bool queued FLEET_GUARDED_BY(mutex) = false;  // until its end
  bool running FLEET_GUARDED_BY(mutex) = false;
  bool stopped FLEET_GUARDED_BY(mutex) = false;

  void make(const std::function<void()>& call) FLEET_EXCLUDES(mutex) {
    const MutexLock lock(mutex);
    if (!stopped) {
      running = true;
      {
        const MutexUnlock unlock(mutex);
        try {
          call();
        } catch (const std::exception& error) {  // must not stop the calls of others
          spdlog::error("internal error: {}: please report this bug", error.what());
        }
      }
    }
    running = queued = false;
    changed.notify_all();
  }
};

Background::Background() : state_(std::make_shared<State>()) {}

bool Background::run(std::function<void()> call) {
  const MutexLock lock(state_->mutex);
  if (state_->queued || state_->stopped) return false;
  state_->queued = true;
  the_loop().post([state = state_, call = std::move(call)] { state->make(call); });
  return true;
}

void Background::stop() {
  const MutexLock lock(state_->mutex);
  state_->stopped = true;
  while (state_->running && !the_loop().runs_here()) state_->changed.wait(state_->mutex);
}

}  // namespace fleet
