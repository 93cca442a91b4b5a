// The worker threads of InputPipeline: they make batches ahead of the consumer.
#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "data/pipeline_ring.h"

namespace fleet::data {
namespace {

// A read is reported after kSlow. It may delay the end of the pipeline by at most kAtTheEnd.
constexpr std::chrono::seconds kSlow{10}, kAtTheEnd{5};

}  // namespace

void InputPipeline::Impl::end_workers() {
  stop();
  std::vector<Worker> ended;  // joins the threads without the lock, which they may need
  const MutexLock lock(mutex_);
  while (!wait_until_idle()) {
    for (Worker& worker : workers_)
      abandon(&worker, std::min<Clock::duration>(timeout(), kAtTheEnd));
  }
  ended.swap(workers_);
}

void InputPipeline::Impl::complete(Slot& slot, int64_t index) {
  slot.batch.real = std::count(slot.batch.weights.begin(), slot.batch.weights.end(), 1.0f);
  slot.batch.weight = std::accumulate(slot.loss_weights.begin(), slot.loss_weights.end(), 0.0);
  slot.made = index;
  samples_ += slot.batch.size;
}

bool InputPipeline::Impl::work_to_take() const {
  return running_ && taken_ < sampler().batches() &&
         taken_ < released_ + meter_.size().prefetch + 1;
}

bool InputPipeline::Impl::wait_until_idle() {
  return idle_.wait_for(mutex_, kPollInterval, [&]() FLEET_REQUIRES(mutex_) { return busy_ == 0; });
}

InputPipeline::Impl::Clock::duration InputPipeline::Impl::timeout() const {
  if (options_.read_timeout == 0) return Clock::duration::max();
  return std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(options_.read_timeout));
}

std::shared_ptr<WorkContext> InputPipeline::Impl::make_context(int number) const {
  return std::make_shared<WorkContext>(batches_, number);
}

void InputPipeline::Impl::add_worker() {
  workers_.push_back({make_context(static_cast<int>(workers_.size())), {}});
  try {
    start(&workers_.back());
  } catch (...) {
    workers_.pop_back();
    throw;
  }
}

void InputPipeline::Impl::add_workers_up_to(int threads) {
  try {
    while (static_cast<int>(workers_.size()) < threads) add_worker();
  } catch (const SystemError& error) {
    spdlog::warn("data.threads stays at {}: {}", workers_.size(), error.what());
  }
}

void InputPipeline::Impl::start(Worker* worker) {
  worker->thread = Thread("data", [this, context = worker->context] { work(*context); });
}

void InputPipeline::Impl::work(WorkContext& context) {
  {
    const MutexLock lock(mutex_);
    // A thread that replaces an abandoned one begins with that one's work.
    if (!context.busy && !wait_for_work(&context)) return;
  }
  for (;;) {
    // Throws in an abandoned thread, which must not touch the lock again.
    const std::exception_ptr error = make_timed(context);
    const MutexLock lock(mutex_);
    finish_work(&context, error);
    if (!wait_for_work(&context)) return;
  }
}

bool InputPipeline::Impl::wait_for_work(WorkContext* context) {
  const auto may_work = [&]() FLEET_REQUIRES(mutex_) {
    return work_to_take() && context->number < meter_.size().threads;
  };
  if (!stopped_ && !may_work()) {
    meter_.add_idle(1, Clock::now());
    while (!stopped_ && !may_work()) work_there_.wait(mutex_);
    meter_.add_idle(-1, Clock::now());
  }
  if (stopped_) return false;
  take_work(context);
  return true;
}

void InputPipeline::Impl::finish_work(WorkContext* context, const std::exception_ptr& error) {
  Slot& slot = slots_[context->index % slots_.size()];
  if (error) slot.error = error;
  slot.missing -= context->end - context->from;
  context->busy = false;
  if (slot.missing == 0) {
    if (!slot.error) {
      const MutexUnlock unlock(mutex_);  // busy_ still counts this thread
      if (!abandon_) batches_.mix(slot, context->index);
    }
    complete(slot, context->index);
    ready_.notify_all();
  }
  if (--busy_ == 0) idle_.notify_all();
}

void InputPipeline::Impl::take_work(WorkContext* context) {
  const int64_t index = taken_, from = next_item_;
  Slot& slot = slots_[index % slots_.size()];
  if (from == 0) batches_.begin(slot, index);
  const int64_t end = next_item_ = std::min(from + chunk_, batches_.items());
  if (end == batches_.items()) {
    ++taken_;
    next_item_ = 0;
  }
  context->busy = true;
  context->index = index;
  context->from = context->at = from;
  context->end = end;
  ++busy_;
}

void InputPipeline::Impl::watch_readers() {
  for (Worker& worker : workers_) {
    int64_t sample = 0;
    if (timeout() > kSlow && worker.context->maker.watchdog().is_slow(kSlow, &sample)) {
      batches_.damage().report_slow(sample, kSlow / std::chrono::seconds(1));
    }
    abandon(&worker, timeout());
  }
}

void InputPipeline::Impl::abandon(Worker* worker, Clock::duration limit) {
  int64_t sample = 0;
  if (!worker->context->maker.watchdog().abandon(limit, &sample)) return;
  abandon_thread(std::move(worker->thread));
  const std::shared_ptr<WorkContext> old = std::move(worker->context);
  batches_.damage().stalled(sample);
  worker->context = make_context(old->number);
  static_cast<Chunk&>(*worker->context) = *old;
  try {
    start(worker);
  } catch (const SystemError&) {  // no thread makes these samples: the consumer gets the error
    finish_work(worker->context.get(), std::current_exception());
  }
}

std::exception_ptr InputPipeline::Impl::make_timed(WorkContext& context) {
  const auto begun = Clock::now();
  const int64_t read = context.maker.reading_ns();
  const std::exception_ptr error = make_range(context);
  const std::chrono::nanoseconds took = Clock::now() - begun;
  making_ns_.fetch_add(took.count(), std::memory_order_relaxed);
  reading_ns_.fetch_add(context.maker.reading_ns() - read, std::memory_order_relaxed);
  return error;
}

std::exception_ptr InputPipeline::Impl::make_range(WorkContext& context) {
  try {
    for (; context.at < context.end && !abandon_; ++context.at) make(context);
    return nullptr;
  } catch (const ReadAbandoned&) {
    throw;
  } catch (...) {
    return std::current_exception();
  }
}

void InputPipeline::Impl::make(WorkContext& context) {
  Slot& slot = slots_[context.index % slots_.size()];
  const auto damaged = batches_.make(context.maker, slot, context.index, context.at);
  made_items_.fetch_add(1, std::memory_order_relaxed);
  if (damaged.empty()) return;
  const MutexLock lock(mutex_);
  for (const Damaged& one : damaged) slot.damaged.insert(one.sample);
}

}  // namespace fleet::data
