#include "ps/trainer_counters.h"

#include <algorithm>
#include <utility>

namespace fleet::ps {

TrainerCounters::TrainerCounters(int servers, int capacity, ServerProgressWriter writer)
    : writer_(std::move(writer)) {
  const MutexLock lock(mutex_);
  use_.servers = servers;
  use_.capacity = capacity;
  open_.resize(static_cast<size_t>(servers));
}

// A push of rows has no answer of its own; those of blocks are accepted.
void TrainerCounters::sent(int server, const Message& message) {
  const MessageHeader& header = message.header;
  const bool push = header.type == MessageType::kPush, pull = header.type == MessageType::kPull;
  if (!push && !pull && header.type != MessageType::kNorms) return;
  const MutexLock lock(mutex_);
  if (!counts_) return;
  use_.sent += static_cast<int64_t>(message.bytes());
  use_.pushes += push;
  use_.pulls += pull;
  Open& open = open_[static_cast<size_t>(server)];
  const bool begins = !open.any();
  open.pushes += push && header.table == 0;
  open.pulls += pull;
  if (begins && open.any()) open.since = Clock::now();
}

void TrainerCounters::received(int server, const Message& message) {
  const MessageType type = message.header.type;
  const bool values = type == MessageType::kValues, accepted = type == MessageType::kAccepted;
  if (!values && !accepted && type != MessageType::kNorms) return;
  const MutexLock lock(mutex_);
  if (!counts_) return;
  use_.received += static_cast<int64_t>(message.bytes());
  Open& open = open_[static_cast<size_t>(server)];
  if (!open.any()) return;
  if (values) open.pulls = std::max(0, open.pulls - 1);
  if (accepted) open.pushes = std::max(0, open.pushes - 1);
  if (!open.any()) end(server, open);
}

void TrainerCounters::end(int server, Open& open) {
  if (server >= ServerUse::kMaxServers) return;
  const auto time = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - open.since);
  use_.answer[static_cast<size_t>(server)] += time.count();
}

void TrainerCounters::count(bool on) {
  const MutexLock lock(mutex_);
  counts_ = on;
}

void TrainerCounters::waited(int64_t ServerUse::*total, Clock::duration time) {
  const MutexLock lock(mutex_);
  if (!counts_) return;
  use_.*total += std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

void TrainerCounters::updated(int64_t queued, int64_t stale) {
  ServerUse now;
  {
    const MutexLock lock(mutex_);
    ++use_.updates;
    use_.queued += queued;
    use_.stale += stale;
    use_.most_stale = std::max(use_.most_stale, stale);
    now = use_;
  }
  writer_.publish(now);
}

ServerUse TrainerCounters::use() const {
  const MutexLock lock(mutex_);
  return use_;
}

void TrainerCounters::add_to(EventLine* line) {
  ServerUse now, before;
  {
    const MutexLock lock(mutex_);
    now = use_;
    before = std::exchange(written_, use_);
  }
  const int64_t updates = now.updates - before.updates;
  if (updates <= 0) return;
  const auto mean = [&](int64_t from, int64_t to) {
    return static_cast<double>(to - from) / static_cast<double>(updates);
  };
  const auto seconds = [&](int64_t from, int64_t to) { return 1e-9 * mean(from, to); };
  line->add("push_wait", seconds(before.push_wait, now.push_wait))
      .add("values_wait", seconds(before.values_wait, now.values_wait))
      .add("rows_wait", seconds(before.rows_wait, now.rows_wait))
      .add("pushed_bytes", mean(before.sent, now.sent))
      .add("pulled_bytes", mean(before.received, now.received));
  std::vector<double> answers;
  for (size_t s = 0; s < std::min<size_t>(static_cast<size_t>(now.servers), now.answer.size());
       ++s) {
    answers.push_back(seconds(before.answer[s], now.answer[s]));
  }
  line->add("answer_time", std::move(answers));
  if (now.capacity == 0) return;
  line->add("push_queue", mean(before.queued, now.queued))
      .add("push_queue_capacity", now.capacity)
      .add("staleness", mean(before.stale, now.stale));
}

}  // namespace fleet::ps
