#include "ps/async_client.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fleet::ps {
namespace {

// The interval of the checks for values to receive, as in Paddle.
constexpr std::chrono::milliseconds kLookAround{10};
constexpr std::chrono::milliseconds kBetweenCalls{500};  // calls of on_wait()

}  // namespace

// Keeps the thread off the connections.
class AsyncClient::Held {
 public:
  explicit Held(AsyncClient& owner) : owner_(owner) {
    owner_.queue_.hold();
    try {
      owner_.rethrow_failure();
    } catch (...) {
      owner_.queue_.release();
      throw;
    }
  }
  ~Held() { owner_.queue_.release(); }
  Held(const Held&) = delete;

 private:
  AsyncClient& owner_;
};

AsyncClient::AsyncClient(ServedModel model, Placement placement, const DenseClientOptions& options,
                         std::vector<ServedTable> tables)
    : DenseClient(std::move(model), std::move(placement), options, std::move(tables)),
      queue_(options.settings.queue_size) {
  for (int s = 0; s < servers(); ++s) segments_.push_back(gradients_of(s));
  thread_ = Thread("ps-async", [this] { communicate(); });
}

AsyncClient::~AsyncClient() { end_thread(); }

void AsyncClient::end_thread() {
  if (!thread_.joinable()) return;
  queue_.end();
  {
    const MutexLock lock(mutex_);
    if (needed_ >= 0) needed_ = -1;
  }
  end_connections();
  thread_.join();
}

void AsyncClient::rethrow_failure() {
  const MutexLock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
}

void AsyncClient::begin(Executor& executor, int64_t steps) {
  const Held held(*this);
  DenseClient::begin(executor, steps);
  const MutexLock lock(mutex_);
  newest_ = {.version = steps};
}

AsyncClient::TakenPlace AsyncClient::take_place(Executor& executor, uint64_t shares) {
  const Held held(*this);
  const TakenPlace taken = DenseClient::take_place(executor, shares);
  const MutexLock lock(mutex_);
  newest_ = {.version = taken.version};
  return taken;
}

void AsyncClient::update(Executor& executor, int64_t step, double learning_rate) {
  executor.synchronize();
  stage_gradients(executor);
  tables().collect(executor);
  const PushHead head = check(executor, learning_rate);
  PendingPush own = packed(executor, head, step);
  {
    const TrainerCounters::Wait full(counters(), &ServerUse::push_wait);
    queue_.push(std::move(own));
  }
  set_steps(step + 1);
  const auto queued = static_cast<int64_t>(queue_.size());
  if (settings().max_staleness >= 0) wait_for(step + 1 - settings().max_staleness);
  rethrow_failure();
  const int64_t version = write_newest(executor);
  counters().updated(queued, std::max<int64_t>(0, step + 1 - version));
  if (model().checked.empty()) return;
  const bool bad = head.loss_is_bad || head.bad_gradient;
  record_outcome(executor, head, {.left_out = bad ? 1u : 0u, .bad_gradient = head.bad_gradient});
}

PendingPush AsyncClient::packed(Executor& executor, const PushHead& head, int64_t step) {
  PendingPush push{.head = head, .step = step};
  if (!tables().empty()) push.rows = tables().gradients(executor);
  for (const auto& segments : segments_) {
    std::vector<std::byte>& bytes = push.servers.emplace_back(bytes_of(segments));
    size_t at = 0;
    for (const BlockSegment& segment : segments) {
      const Bytes gradient = gradient_bytes(executor, segment);
      std::memcpy(bytes.data() + at, gradient.data.data(), gradient.data.size());
      at += segment.padded();
    }
  }
  return push;
}

void AsyncClient::wait_for(int64_t version) {
  {
    const MutexLock lock(mutex_);
    if (newest_.version >= version) return;
    needed_ = version;
  }
  queue_.hurry(true);
  {
    const TrainerCounters::Wait late(counters(), &ServerUse::values_wait);
    const MutexLock lock(mutex_);
    while (!failure_ && newest_.version < version) {
      const auto look = std::chrono::steady_clock::now() + kBetweenCalls;
      if (!changed_.wait_until(mutex_, look) && on_wait_) on_wait_();
    }
    needed_ = -1;
  }
  queue_.hurry(false);
}

int64_t AsyncClient::write_newest(Executor& executor) {
  std::vector<Message> messages;
  int64_t version = 0;
  {
    const MutexLock lock(mutex_);
    messages = std::exchange(newest_.messages, {});
    version = newest_.version;
  }
  for (int s = 0; s < std::ssize(messages); ++s) {
    land(executor, values_of(s), behind_head<ValuesHead>(messages[s]));
  }
  return version;
}

void AsyncClient::settle(Executor&) { const Held held(*this); }

// Returns when the servers know it: before another trainer can leave the meeting.
void AsyncClient::meet() {
  if (settings().max_staleness < 0) return;
  const Held held(*this);
  for (int s = 0; s < servers(); ++s) {
    send(s, {.header = {.type = MessageType::kMeeting, .sequence = shares()}});
  }
  for (int s = 0; s < servers(); ++s) wait(s, MessageType::kAccepted);
}

void AsyncClient::synchronize(Executor& executor, bool with_states) {
  executor.synchronize();
  const Held held(*this);
  uint32_t sections = kValueSection | present(kAverageSection);
  if (present(kAverageSection)) sections |= kCounterSection;
  if (with_states) {
    sections |= kStateSection | kCounterSection;
    pull_states(executor, 0, present(sections), -1);
  } else {
    share(executor, sections);
  }
  const MutexLock lock(mutex_);
  newest_.messages.clear();
}

void AsyncClient::finish() {
  say_missing();
  {
    const Held held(*this);
    for (int s = 0; s < servers(); ++s) send(s, {.header = {.type = MessageType::kGoodbye}});
  }
  end_thread();
}

// --- The thread -------------------------------------------------------------------------------

void AsyncClient::communicate() {
  try {
    while (!queue_.ended()) {
      std::vector<PendingPush> pushes =
          queue_.take(settings().merged_pushes, kLookAround * settings().queue_waits, kLookAround);
      if (queue_.ended()) return;
      if (!pushes.empty()) push(merge(std::move(pushes), segments_));
      if (should_pull()) pull();
    }
  } catch (...) {
    const MutexLock lock(mutex_);
    failure_ = std::current_exception();
    queue_.end();
    changed_.notify_all();
  }
}

void AsyncClient::push(PendingPush pending) {
  sequence_ += 1;
  unreceived_ += 1;
  tables().send(std::move(pending.rows), sequence_, pending.step);
  for (int s = 0; s < servers(); ++s) {
    const auto bytes = std::make_shared<std::vector<std::byte>>(std::move(pending.servers[s]));
    send(s, {.header = {.type = MessageType::kPush,
                        .count = static_cast<uint32_t>(segments_[s].size()),
                        .sequence = sequence_,
                        .version = pending.step},
             .parts = {bytes_of_head(pending.head), {.data = *bytes, .owner = bytes}}});
  }
  for (int s = 0; s < servers(); ++s) wait(s, MessageType::kAccepted);
}

// The trainer waits only after its last push, so a pull for it may wait for other trainers.
bool AsyncClient::should_pull() {
  {
    const MutexLock lock(mutex_);
    if (needed_ > newest_.version) return queue_.empty();
  }
  return unreceived_ > (settings().independent_pulls ? settings().pushes_before_pull : 0);
}

void AsyncClient::pull() {
  int64_t needed = 0;
  {
    const MutexLock lock(mutex_);
    if (needed_ >= 0 && queue_.empty()) needed = needed_;
  }
  for (int s = 0; s < servers(); ++s) {
    send(s, {.header = {.type = MessageType::kPull, .version = needed}});
  }
  Received received;
  for (int s = 0; s < servers(); ++s) {
    const Message& values = received.messages.emplace_back(wait(s, MessageType::kValues));
    const int64_t version = values.header.version;
    if (s == 0 || version < received.version) received.version = version;
  }
  unreceived_ = 0;
  const MutexLock lock(mutex_);
  newest_ = std::move(received);
  changed_.notify_all();
}

}  // namespace fleet::ps
