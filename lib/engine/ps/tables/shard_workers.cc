#include "ps/tables/shard_workers.h"

#include <algorithm>

namespace fleet::ps {

ShardWorkers::ShardWorkers(int threads)
    : threads_(start_threads(static_cast<size_t>(threads), "cold rows", [this] { help(); })) {}

ShardWorkers::~ShardWorkers() {
  const MutexLock lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void ShardWorkers::take_part(Call& call) {
  try {
    for (size_t i; (i = call.next++) < call.count;) (*call.work)(i);
  } catch (...) {
    call.next = call.count;
    const MutexLock lock(mutex_);
    if (!call.error) call.error = std::current_exception();
  }
}

void ShardWorkers::help() {
  const MutexLock lock(mutex_);
  while (!stopping_) {
    if (calls_.empty()) {
      changed_.wait(mutex_);
      continue;
    }
    Call& call = *calls_.front();
    ++call.helpers;
    {
      const MutexUnlock unlock(mutex_);
      take_part(call);
    }
    std::erase(calls_, &call);
    if (--call.helpers == 0) changed_.notify_all();
  }
}

void ShardWorkers::run(size_t count, const std::function<void(size_t)>& work) {
  Call call{.work = &work, .count = count};
  {
    const MutexLock lock(mutex_);
    calls_.push_back(&call);
    changed_.notify_all();
  }
  take_part(call);
  const MutexLock lock(mutex_);
  std::erase(calls_, &call);
  while (call.helpers > 0) changed_.wait(mutex_);
  if (call.error) std::rethrow_exception(call.error);
}

}  // namespace fleet::ps
