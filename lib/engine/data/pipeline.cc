#include "data/pipeline.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "data/pipeline_ring.h"
#include "observe/trace_recorder.h"

namespace fleet::data {
namespace {

// The batch that is being made still comes after an interrupt, unless no sample was made for so
// long: a disk does not answer.
constexpr std::chrono::seconds kInterruptDelay{2};

ReaderTuner::Options tuner_options(const InputPipeline::Options& options) {
  const ReaderSize first{std::max(options.threads, 1), std::max(options.prefetch, 1)};
  return {first,
          {std::max(first.threads, options.max_threads),
           std::max(first.prefetch, options.max_prefetch)}};
}

}  // namespace

InputPipeline::Impl::Impl(std::unique_ptr<Source> source, AugmentChain chain,
                          const Options& options)
    : options_(options),
      batches_(std::move(source), std::move(chain), options),
      meter_(tuner_options(options), Clock::now()),
      slots_(options.async ? std::max({options.prefetch, options.max_prefetch, 1}) + 1 : 1) {
  FLEET_CHECK(options.image == batches_.chain().image(),
              "chain and pipeline make images of different sizes");
  const int makers = options.async ? std::max({options.threads, options.max_threads, 1}) : 1;
  for (Slot& slot : slots_) {
    slot.prepare(batches_.layout(), options.image_memory);
    if (options.reports_damaged) slot.why.resize(options.sampler.batch);
    slot.batch.why = slot.why;
  }
  // Small enough that workers share a batch evenly, large enough that locking costs little.
  chunk_ = std::clamp<int64_t>(options.sampler.batch / (4 * makers), 1, 64);
  try {
    const MutexLock lock(mutex_);
    if (!options.async) inline_context_ = make_context(0);
    while (options.async && static_cast<int>(workers_.size()) < meter_.size().threads) {
      add_worker();
    }
  } catch (...) {
    end_workers();  // those that started wait for work
    throw;
  }
}

void InputPipeline::Impl::set_class_weights(std::vector<float> weights) {
  const MutexLock lock(mutex_);
  FLEET_CHECK(!running_, "class weights after start_epoch()");
  batches_.set_class_weights(std::move(weights));
  for (Slot& slot : slots_) batches_.prepare_class_weights(slot);
}

void InputPipeline::Impl::set_merged_steps(int64_t steps) {
  const MutexLock lock(mutex_);
  FLEET_CHECK(!running_ && steps > 0, "merged steps after start_epoch(), or none");
  batches_.set_merged_steps(steps);
}

void InputPipeline::Impl::start_epoch(int64_t epoch, int64_t first, std::optional<int64_t> step) {
  if (first < 0 || first > sampler().batches()) {
    throw Error(ErrorCode::kUsage, "there is no batch " + std::to_string(first), "start_epoch",
                "an epoch has " + std::to_string(sampler().batches()) + " batches, from 0 on");
  }
  const MutexLock lock(mutex_);
  if (stopped_) return;
  running_ = false;
  drop_work(true);
  while (!wait_until_idle()) watch_readers();
  drop_work(stopped_);
  batches_.start_epoch(epoch, step ? *step - first : epoch * sampler().batches());
  stand_ins_ = 0;
  first_ = taken_ = given_ = released_ = first;
  next_item_ = 0;
  for (Slot& slot : slots_) slot.made = -1;
  running_ = true;
  meter_.skip_to(Clock::now());
  work_there_.notify_all();
}

const Batch* InputPipeline::Impl::next(const std::atomic<int>* interrupt) {
  const auto start = Clock::now();
  const MutexLock lock(mutex_);
  if (!running_ && !stopped_) {
    throw Error(ErrorCode::kUsage, "no epoch has started", "next", "call start_epoch() first");
  }
  interrupted_ = false;
  if (stopped_ || given_ + stand_ins_ >= sampler().batches()) return nullptr;
  // The speed test reads the front of the queue without popping it.
  const int64_t wanted = options_.speed_test ? first_ : given_;
  Slot& slot = slots_[wanted % slots_.size()];
  if (!options_.speed_test) {
    released_ = given_;
    work_there_.notify_all();
  }
  if (options_.async) {
    const TraceSpan span(TraceName::kInputWait, wanted);
    if (!wait_for_batch(slot, wanted, interrupt)) {
      interrupted_ = true;
      return nullptr;
    }
  } else if (slot.made != wanted) {
    if (!make_all(slot, wanted, interrupt)) {
      interrupted_ = !stopped_;
      return nullptr;
    }
  }
  if (stopped_) return nullptr;
  if (slot.error) std::rethrow_exception(slot.error);
  damaged_.insert(slot.damaged.begin(), slot.damaged.end());
  slot.batch.index = given_++;
  slot.batch.data_time = std::chrono::duration<double>(Clock::now() - start).count();
  waiting_time_ += slot.batch.data_time;
  if (tunes()) tune(slot.batch.data_time);
  return &slot.batch;
}

bool InputPipeline::Impl::wait_for_batch(const Slot& slot, int64_t index,
                                         const std::atomic<int>* interrupt) {
  std::optional<Clock::time_point> leave;  // set once interrupted
  int64_t made_until = 0;                  // items made when it was set
  while (!ready_.wait_for(mutex_, kPollInterval, [&]() FLEET_REQUIRES(mutex_) {
    return stopped_ || slot.made == index;
  })) {
    watch_readers();
    if (!interrupt || interrupt->load() == 0) continue;
    if (const int64_t made = made_items_; !leave || made != made_until) {
      leave = Clock::now() + kInterruptDelay;
      made_until = made;
    }
    if (Clock::now() >= *leave) return false;
  }
  return true;
}

bool InputPipeline::Impl::at_end() const {
  const MutexLock lock(mutex_);
  return !interrupted_;
}

const Batch* InputPipeline::Impl::placeholder_batch() {
  const MutexLock lock(mutex_);
  if (!stand_in_) {
    stand_in_ = std::make_unique<Slot>();
    stand_in_->prepare(batches_.layout(), {});
    batches_.prepare_class_weights(*stand_in_);
    stand_in_->blank(options_.ignored_label);
  }
  stand_in_->batch.epoch = sampler().epoch();
  stand_in_->batch.index = given_ + stand_ins_++;
  batches_.set_length(*stand_in_, stand_in_->batch.index);
  batches_.set_denominators(*stand_in_, stand_in_->batch.index);
  return &stand_in_->batch;
}

std::vector<int64_t> InputPipeline::Impl::damaged() const {
  const MutexLock lock(mutex_);
  return {damaged_.begin(), damaged_.end()};
}

void InputPipeline::Impl::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  drop_work(true);
  work_there_.notify_all();
  ready_.notify_all();
}

PipelineStats InputPipeline::Impl::stats() const {
  const MutexLock lock(mutex_);
  const int64_t front = options_.speed_test ? first_ : given_;
  const auto waits = [&](const Slot& slot) { return slot.made >= front; };
  return {.samples = samples_,
          .damaged = static_cast<int64_t>(damaged_.size()),
          .waiting_time = waiting_time_,
          .queued = std::count_if(slots_.begin(), slots_.end(), waits),
          .capacity = options_.async ? meter_.size().prefetch : 0,
          .threads = options_.async ? meter_.size().threads : 0};
}

ReaderWork InputPipeline::Impl::reader_work() const {
  return {.making_ns = making_ns_.load(std::memory_order_relaxed),
          .reading_ns = reading_ns_.load(std::memory_order_relaxed)};
}

void InputPipeline::Impl::drop_work(bool on) {
  abandon_ = on;
  batches_.storage()->cancel(on);
}

bool InputPipeline::Impl::tunes() const {
  return options_.async && (options_.max_threads > 0 || options_.max_prefetch > 0);
}

void InputPipeline::Impl::tune(double waited) {
  const auto change = meter_.on_batch(waited, Clock::now());
  if (!change) return;
  if (options_.sampler.rank == 0) {
    spdlog::info(
        "data.threads {}, data.prefetch {} (training waited for input {:.0f} % of the time)",
        change->size.threads, change->size.prefetch, 100 * change->waited);
  }
  add_workers_up_to(change->size.threads);
  work_there_.notify_all();
}

bool InputPipeline::Impl::make_all(Slot& slot, int64_t index, const std::atomic<int>* interrupt) {
  batches_.begin(slot, index);
  std::exception_ptr error;
  {
    const MutexUnlock unlock(mutex_);
    inline_context_->index = index;
    inline_context_->at = 0;
    inline_context_->end = batches_.items();
    batches_.storage()->set_interrupt(interrupt);
    error = make_timed(*inline_context_);
    batches_.storage()->set_interrupt(nullptr);
    if (!error && !abandon_) batches_.mix(slot, index);
  }
  if (was_cancelled(error)) return false;
  slot.error = error;
  complete(slot, index);
  return true;
}

InputPipeline::InputPipeline(std::unique_ptr<Source> source, AugmentChain chain,
                             const Options& options)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(chain), options)) {}
InputPipeline::~InputPipeline() = default;

void InputPipeline::set_class_weights(std::vector<float> weights) {
  impl_->set_class_weights(std::move(weights));
}
void InputPipeline::set_merged_steps(int64_t steps) { impl_->set_merged_steps(steps); }
void InputPipeline::start_epoch(int64_t epoch, int64_t first, std::optional<int64_t> step) {
  impl_->start_epoch(epoch, first, step);
}
const Batch* InputPipeline::next(const std::atomic<int>* interrupt) {
  return impl_->next(interrupt);
}
bool InputPipeline::at_end() const { return impl_->at_end(); }
const Batch* InputPipeline::placeholder_batch() { return impl_->placeholder_batch(); }
std::vector<int64_t> InputPipeline::damaged() const { return impl_->damaged(); }
void InputPipeline::stop() { impl_->stop(); }
int64_t InputPipeline::batches() const { return impl_->sampler().batches(); }
int64_t InputPipeline::samples() const { return impl_->source().size(); }
int64_t InputPipeline::batch_size() const { return impl_->options().sampler.batch; }
const ImageShape& InputPipeline::image() const { return impl_->options().image; }
const std::vector<int64_t>& InputPipeline::lengths() const { return impl_->options().lengths; }
const std::vector<Column>& InputPipeline::columns() const { return impl_->columns(); }
const Source& InputPipeline::source() const { return impl_->source(); }
const AugmentChain& InputPipeline::chain() const { return impl_->chain(); }
PipelineStats InputPipeline::stats() const { return impl_->stats(); }
ReaderWork InputPipeline::work() const { return impl_->reader_work(); }

}  // namespace fleet::data
