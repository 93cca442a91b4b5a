#include "tests/engine/backend/cuda/emulator/block.h"

#include <ucontext.h>

#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"

namespace fleet::emulator {
namespace {

constexpr int kWarp = 32;
constexpr size_t kStack = 128 << 10;
constexpr int kNone = -1;

enum class Wait { kNothing, kBarrier, kWarp, kReturned };

struct Fiber {
  ucontext_t context;
  std::unique_ptr<char[]> stack;
};

struct Thread {
  Wait wait = Wait::kNothing;
  int fiber = kNone;  // which it was started on
  int64_t calls = 0;  // of exchange()
};

struct Warp {
  uint64_t values[2][kWarp];  // of the last two calls: a fast lane may be one ahead of a slow one
  int arrived = 0;
};

// One block at a time.
class Engine {
 public:
  // backwards: the last thread begins.
  void run_block(dim3 size, const std::function<void()>& thread, void (*set)(const Position&),
                 const Position& position, bool backwards) {
    backwards_ = backwards;
    body_ = &thread;
    set_ = set;
    position_ = position;
    count_ = static_cast<int>(size.x * size.y * size.z);
    threads_.assign(count_, {});
    warps_.assign((count_ + kWarp - 1) / kWarp, {});
    runnable_.clear();
    started_ = returned_ = at_barrier_ = 0;
    while (returned_ < count_) {
      if (started_ < count_) {
        switch_to(take_fiber());
      } else if (!runnable_.empty()) {
        current_ = runnable_.front();
        runnable_.pop_front();
        threads_[current_].wait = Wait::kNothing;
        set_position();
        switch_to(threads_[current_].fiber);
      } else {
        fail("threads of a block wait for one another for ever: some at a barrier, some elsewhere");
      }
    }
  }

  void barrier() {
    threads_[current_].wait = Wait::kBarrier;
    if (++at_barrier_ == count_ - returned_) {
      release_barrier();
      return;
    }
    yield();
  }

  const uint64_t* exchange(uint64_t value) {
    Thread& self = threads_[current_];
    Warp& warp = warps_[current_ / kWarp];
    uint64_t* values = warp.values[self.calls++ % 2];
    values[current_ % kWarp] = value;
    if (++warp.arrived < kWarp) {
      self.wait = Wait::kWarp;
      yield();
      return values;
    }
    warp.arrived = 0;
    const int first = current_ / kWarp * kWarp;
    for (int i = first; i < first + kWarp; ++i) {
      if (i != current_) runnable_.push_back(i);
    }
    return values;
  }

  int lane() const { return current_ % kWarp; }
  void* shared() { return shared_.get(); }
  void make_shared(size_t bytes) {
    if (bytes > shared_bytes_) {
      shared_.reset(static_cast<char*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64)));
      shared_bytes_ = bytes;
    }
    if (bytes > 0) std::memset(shared_.get(), 0xcb, bytes);
  }
  std::mutex& mutex() { return mutex_; }

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };

  // A fiber runs threads that have not begun, one after the other, until one of them waits.
  static void run_fiber();
  void run_threads() {
    while (true) {
      while (started_ < count_) {
        current_ = backwards_ ? count_ - 1 - started_ : started_;
        ++started_;
        threads_[current_].fiber = running_;
        set_position();
        (*body_)();
        finish();
      }
      idle_.push_back(running_);
      swapcontext(&fibers_[running_]->context, &scheduler_);
    }
  }

  // `current_` returned. Others may have waited for just that.
  void finish() {
    threads_[current_].wait = Wait::kReturned;
    ++returned_;
    if (at_barrier_ > 0 && at_barrier_ == count_ - returned_) release_barrier();
  }

  void release_barrier() {
    at_barrier_ = 0;
    for (int i = 0; i < count_; ++i) {
      if (threads_[i].wait != Wait::kBarrier) continue;
      threads_[i].wait = Wait::kNothing;
      if (i != current_) runnable_.push_back(i);
    }
  }

  void yield() {
    const int self = running_;
    swapcontext(&fibers_[self]->context, &scheduler_);
  }

  int take_fiber() {
    if (!idle_.empty()) {
      const int fiber = idle_.back();
      idle_.pop_back();
      return fiber;
    }
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = std::make_unique_for_overwrite<char[]>(kStack);
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = kStack;
    fiber->context.uc_link = nullptr;
    makecontext(&fiber->context, run_fiber, 0);
    fibers_.push_back(std::move(fiber));
    return static_cast<int>(fibers_.size()) - 1;
  }

  void switch_to(int fiber) {
    running_ = fiber;
    swapcontext(&scheduler_, &fibers_[fiber]->context);
  }

  void set_position() {
    const unsigned i = static_cast<unsigned>(current_);
    const dim3& size = position_.block_size;
    position_.thread = {i % size.x, i / size.x % size.y, i / size.x / size.y};
    set_(position_);
  }

  // The fibers that wait are given up with what is on their stacks.
  [[noreturn]] void fail(const std::string& what) {
    fibers_.clear();
    idle_.clear();
    throw Error(ErrorCode::kInternal, what, "the emulated GPU");
  }

  std::mutex mutex_;
  const std::function<void()>* body_ = nullptr;
  void (*set_)(const Position&) = nullptr;
  Position position_;
  bool backwards_ = false;
  int count_ = 0, started_ = 0, returned_ = 0, at_barrier_ = 0;
  int current_ = kNone;  // thread
  int running_ = kNone;  // fiber
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::deque<int> runnable_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<int> idle_;
  ucontext_t scheduler_;
  std::unique_ptr<char, Free> shared_;
  size_t shared_bytes_ = 0;
};

Engine& engine() {
  static Engine engine;
  return engine;
}

void Engine::run_fiber() { engine().run_threads(); }

}  // namespace

void run_grid(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& thread,
              void (*set)(const Position&)) {
  const std::lock_guard lock(engine().mutex());
  // A kernel that lacks a barrier is right in one order of its threads only.
  static unsigned launches = 0;
  ++launches;
  for (unsigned z = 0; z < grid.z; ++z) {
    for (unsigned y = 0; y < grid.y; ++y) {
      for (unsigned x = 0; x < grid.x; ++x) {
        engine().make_shared(shared_bytes);
        engine().run_block(block, thread, set, {{}, {x, y, z}, block, grid},
                           (launches + x + y + z) % 2 == 0);
      }
    }
  }
}

void barrier() { engine().barrier(); }
const uint64_t* exchange(uint64_t value) { return engine().exchange(value); }
int lane() { return engine().lane(); }
void* shared_memory() { return engine().shared(); }

}  // namespace fleet::emulator
