#include "data/pipeline.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <numeric>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/thread.h"
#include "data/batch_slot.h"
#include "data/reader_tuner.h"
#include "observe/trace_recorder.h"

namespace fleet::data {
namespace {

using Clock = std::chrono::steady_clock;
using Slot = BatchSlot;

// kPollInterval: a waiting thread checks the readers this often. kSlow: a read is reported after
// this time. kAtTheEnd: a read may delay the end of the pipeline by at most this. kInterruptDelay:
// the batch that is being made still comes after an interrupt, unless no sample was made for so
// long: a disk does not answer.
constexpr Clock::duration kInterruptDelay = std::chrono::seconds(2);
constexpr Clock::duration kPollInterval = std::chrono::milliseconds(200);
constexpr Clock::duration kSlow = std::chrono::seconds(10), kAtTheEnd = std::chrono::seconds(5);

// Items [from, end) of batch `index`; `at` is the current one.
struct Chunk {
  bool busy = false;  // a thread is working on it
  int64_t index = 0, from = 0, at = 0, end = 0;
};

// State of a worker thread; once the thread is abandoned, it may use nothing else.
struct WorkContext : Chunk {
  WorkContext(const BatchMaker& batches, int ordinal)
      : source(batches.source()),
        maker(*source, batches.chain(), batches.cache(), batches.storage(), batches.upright()),
        number(ordinal) {}
  std::shared_ptr<const Source> source;
  SampleMaker maker;
  const int number;  // the worker's, from 0
};

struct Worker {
  std::shared_ptr<WorkContext> context;
  Thread thread;
};

bool was_cancelled(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const ReadCancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

// Keeps threads that are blocked in the kernel; they are never joined.
void abandon_thread(Thread thread) {
  static Mutex mutex;
  static auto* const threads FLEET_PT_GUARDED_BY(mutex) = new std::vector<Thread>;
  const MutexLock lock(mutex);
  threads->push_back(std::move(thread));
}

}  // namespace

// The ring: batch b of the epoch is made in slot b % slots, as soon as the consumer has released
// the previous batch in that slot.
class InputPipeline::Impl {
 public:
  Impl(std::unique_ptr<Source> source, AugmentChain chain, const Options& options)
      : options_(options),
        batches_(std::move(source), std::move(chain), options),
        tuner_(tuner_options(options)),
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
      while (options.async && static_cast<int>(workers_.size()) < tuner_.size().threads) {
        add_worker();
      }
    } catch (...) {
      end_workers();  // those that started wait for work
      throw;
    }
  }

  ~Impl() { end_workers(); }

  void set_class_weights(std::vector<float> weights) {
    const MutexLock lock(mutex_);
    FLEET_CHECK(!running_, "class weights after start_epoch()");
    batches_.set_class_weights(std::move(weights));
    for (Slot& slot : slots_) batches_.prepare_class_weights(slot);
  }

  void set_merged_steps(int64_t steps) {
    const MutexLock lock(mutex_);
    FLEET_CHECK(!running_ && steps > 0, "merged steps after start_epoch(), or none");
    batches_.set_merged_steps(steps);
  }

  void start_epoch(int64_t epoch, int64_t first, std::optional<int64_t> step) {
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
    begin_interval();
    work_there_.notify_all();
  }

  const Batch* next(const std::atomic<int>* interrupt) {
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
      std::optional<Clock::time_point> leave;  // set once interrupted
      int64_t made_until = 0;                  // items made when it was set
      while (!ready_.wait_for(mutex_, kPollInterval, [&]() FLEET_REQUIRES(mutex_) {
        return stopped_ || slot.made == wanted;
      })) {
        watch_readers();
        if (!interrupt || interrupt->load() == 0) continue;
        if (const int64_t made = made_items_; !leave || made != made_until) {
          leave = Clock::now() + kInterruptDelay;
          made_until = made;
        }
        if (Clock::now() < *leave) continue;
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

  bool at_end() const {
    const MutexLock lock(mutex_);
    return !interrupted_;
  }

  const Batch* placeholder_batch() {
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

  std::vector<int64_t> damaged() const {
    const MutexLock lock(mutex_);
    return {damaged_.begin(), damaged_.end()};
  }

  void stop() {
    const MutexLock lock(mutex_);
    stopped_ = true;
    drop_work(true);
    work_there_.notify_all();
    ready_.notify_all();
  }

  PipelineStats stats() const {
    const MutexLock lock(mutex_);
    const int64_t front = options_.speed_test ? first_ : given_;
    const auto waits = [&](const Slot& slot) { return slot.made >= front; };
    return {.samples = samples_,
            .damaged = static_cast<int64_t>(damaged_.size()),
            .waiting_time = waiting_time_,
            .queued = std::count_if(slots_.begin(), slots_.end(), waits),
            .capacity = options_.async ? tuner_.size().prefetch : 0,
            .threads = options_.async ? tuner_.size().threads : 0};
  }

  ReaderWork reader_work() const {
    return {.making_ns = making_ns_.load(std::memory_order_relaxed),
            .reading_ns = reading_ns_.load(std::memory_order_relaxed)};
  }

  const Options& options() const { return options_; }
  const Sampler& sampler() const { return batches_.sampler(); }
  const Source& source() const { return *batches_.source(); }
  const std::vector<Column>& columns() const { return batches_.columns(); }
  const AugmentChain& chain() const { return batches_.chain(); }

 private:
  void end_workers() {
    stop();
    std::vector<Worker> ended;  // joins the threads without the lock, which they may need
    const MutexLock lock(mutex_);
    while (!wait_until_idle()) {
      for (Worker& worker : workers_) abandon(&worker, std::min(timeout(), kAtTheEnd));
    }
    ended.swap(workers_);
  }

  // Whether the samples that are being made are no longer needed.
  void drop_work(bool on) {
    abandon_ = on;
    batches_.storage()->cancel(on);
  }

  // Call it when the slot's last sample has been made.
  void complete(Slot& slot, int64_t index) FLEET_REQUIRES(mutex_) {
    slot.batch.real = std::count(slot.batch.weights.begin(), slot.batch.weights.end(), 1.0f);
    slot.batch.weight = std::accumulate(slot.loss_weights.begin(), slot.loss_weights.end(), 0.0);
    slot.made = index;
    samples_ += slot.batch.size;
  }

  bool work_to_take() const FLEET_REQUIRES(mutex_) {
    return running_ && taken_ < sampler().batches() &&
           taken_ < released_ + tuner_.size().prefetch + 1;
  }

  // Waits up to kPollInterval; returns whether no worker is making samples.
  bool wait_until_idle() FLEET_REQUIRES(mutex_) {
    return idle_.wait_for(mutex_, kPollInterval,
                          [&]() FLEET_REQUIRES(mutex_) { return busy_ == 0; });
  }

  Clock::duration timeout() const {
    if (options_.read_timeout == 0) return Clock::duration::max();
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(options_.read_timeout));
  }

  std::shared_ptr<WorkContext> make_context(int number) const {
    return std::make_shared<WorkContext>(batches_, number);
  }

  void add_worker() FLEET_REQUIRES(mutex_) {
    workers_.push_back({make_context(static_cast<int>(workers_.size())), {}});
    try {
      start(&workers_.back());
    } catch (...) {
      workers_.pop_back();
      throw;
    }
  }

  // Continues with fewer if the system refuses more.
  void add_workers_up_to(int threads) FLEET_REQUIRES(mutex_) {
    try {
      while (static_cast<int>(workers_.size()) < threads) add_worker();
    } catch (const SystemError& error) {
      spdlog::warn("data.threads stays at {}: {}", workers_.size(), error.what());
    }
  }

  static ReaderTuner::Options tuner_options(const Options& options) {
    const ReaderSize first{std::max(options.threads, 1), std::max(options.prefetch, 1)};
    return {first,
            {std::max(first.threads, options.max_threads),
             std::max(first.prefetch, options.max_prefetch)}};
  }

  bool tunes() const {
    return options_.async && (options_.max_threads > 0 || options_.max_prefetch > 0);
  }

  // The time since the last batch does not count: the consumer did something else.
  void begin_interval() FLEET_REQUIRES(mutex_) { interval_start_ = idle_since_ = Clock::now(); }

  // Counts the time that idle threads have spent since the last call; then there are `more` of
  // them.
  void add_idle(int more) FLEET_REQUIRES(mutex_) {
    const Clock::time_point now = Clock::now();
    window_.idle += idle_threads_ * std::chrono::duration<double>(now - idle_since_).count();
    idle_since_ = now;
    idle_threads_ += more;
  }

  // Call it after each batch that the consumer got.
  void tune(double waited) FLEET_REQUIRES(mutex_) {
    window_.waited += waited;
    ++window_.batches;
    const Clock::time_point end = Clock::now();
    window_.seconds += std::chrono::duration<double>(end - interval_start_).count();
    interval_start_ = end;
    if (!ReaderTuner::is_long_enough(window_.seconds, window_.batches)) return;
    add_idle(0);
    const ReaderSize old = tuner_.size(), now = tuner_.next(window_);
    const double share = 100 * window_.waited / window_.seconds;
    window_ = {};
    if (now == old) return;
    if (options_.sampler.rank == 0) {
      spdlog::info(
          "data.threads {}, data.prefetch {} (training waited for input {:.0f} % of the time)",
          now.threads, now.prefetch, share);
    }
    add_workers_up_to(now.threads);
    work_there_.notify_all();
  }

  void start(Worker* worker) {
    worker->thread = Thread("data", [this, context = worker->context] { work(*context); });
  }

  void work(WorkContext& context) {
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

  // Returns false if the pipeline is stopped.
  bool wait_for_work(WorkContext* context) FLEET_REQUIRES(mutex_) {
    const auto may_work = [&]() FLEET_REQUIRES(mutex_) {
      return work_to_take() && context->number < tuner_.size().threads;
    };
    if (!stopped_ && !may_work()) {
      add_idle(1);
      while (!stopped_ && !may_work()) work_there_.wait(mutex_);
      add_idle(-1);
    }
    if (stopped_) return false;
    take_work(context);
    return true;
  }

  void finish_work(WorkContext* context, const std::exception_ptr& error) FLEET_REQUIRES(mutex_) {
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

  void take_work(WorkContext* context) FLEET_REQUIRES(mutex_) {
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

  // Moves work that a dead mount holds up to a new thread. Waiting threads call it.
  void watch_readers() FLEET_REQUIRES(mutex_) {
    for (Worker& worker : workers_) {
      int64_t sample = 0;
      if (timeout() > kSlow && worker.context->maker.watchdog().is_slow(kSlow, &sample)) {
        batches_.damage().report_slow(sample, kSlow / std::chrono::seconds(1));
      }
      abandon(&worker, timeout());
    }
  }

  void abandon(Worker* worker, Clock::duration limit) FLEET_REQUIRES(mutex_) {
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

  // The synchronous reader: the consumer's own thread makes the batch. Returns false if `interrupt`
  // ended a wait for the storage.
  bool make_all(Slot& slot, int64_t index, const std::atomic<int>* interrupt)
      FLEET_REQUIRES(mutex_) {
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

  std::exception_ptr make_timed(WorkContext& context) {
    const auto begun = Clock::now();
    const int64_t read = context.maker.reading_ns();
    const std::exception_ptr error = make_range(context);
    const std::chrono::nanoseconds took = Clock::now() - begun;
    making_ns_.fetch_add(took.count(), std::memory_order_relaxed);
    reading_ns_.fetch_add(context.maker.reading_ns() - read, std::memory_order_relaxed);
    return error;
  }

  std::exception_ptr make_range(WorkContext& context) {
    try {
      for (; context.at < context.end && !abandon_; ++context.at) make(context);
      return nullptr;
    } catch (const ReadAbandoned&) {
      throw;
    } catch (...) {
      return std::current_exception();
    }
  }

  void make(WorkContext& context) {
    Slot& slot = slots_[context.index % slots_.size()];
    const auto damaged = batches_.make(context.maker, slot, context.index, context.at);
    made_items_.fetch_add(1, std::memory_order_relaxed);
    if (damaged.empty()) return;
    const MutexLock lock(mutex_);
    for (const Damaged& one : damaged) slot.damaged.insert(one.sample);
  }

  const Options options_;
  BatchMaker batches_;                           // its epoch changes only while no worker is busy
  std::shared_ptr<WorkContext> inline_context_;  // used without threads
  int64_t chunk_ = 1;
  std::atomic<bool> abandon_{false};  // samples being made are no longer needed
  std::atomic<int64_t> making_ns_{0}, reading_ns_{0}, made_items_{0};

  mutable Mutex mutex_;
  ReaderTuner tuner_ FLEET_GUARDED_BY(mutex_);
  ReaderTuner::Window window_ FLEET_GUARDED_BY(mutex_);  // the current one
  Clock::time_point interval_start_ FLEET_GUARDED_BY(mutex_) = Clock::now();
  Clock::time_point idle_since_ FLEET_GUARDED_BY(mutex_) = Clock::now();
  int idle_threads_ FLEET_GUARDED_BY(mutex_) = 0;
  CondVar work_there_, ready_, idle_;
  // The vector never changes. The content of a batch belongs to the thread that makes it, then to
  // the consumer; `made`, `missing`, `error` and `damaged` need the lock.
  std::vector<Slot> slots_;
  std::unique_ptr<Slot> stand_in_ FLEET_GUARDED_BY(mutex_);
  bool running_ FLEET_GUARDED_BY(mutex_) = false;
  bool stopped_ FLEET_GUARDED_BY(mutex_) = false;
  int busy_ FLEET_GUARDED_BY(mutex_) = 0;       // number of workers making samples
  int64_t first_ FLEET_GUARDED_BY(mutex_) = 0;  // the first batch of this run of the epoch
  // Batches completely handed out to workers; the next is being handed out.
  int64_t taken_ FLEET_GUARDED_BY(mutex_) = 0;
  int64_t next_item_ FLEET_GUARDED_BY(mutex_) = 0;  // next item of batch taken_
  // The consumer has released all batches before this one.
  int64_t released_ FLEET_GUARDED_BY(mutex_) = 0;
  int64_t given_ FLEET_GUARDED_BY(mutex_) = 0;          // batches given to the consumer
  std::set<int64_t> damaged_ FLEET_GUARDED_BY(mutex_);  // in the batches given so far
  int64_t stand_ins_ FLEET_GUARDED_BY(mutex_) = 0;      // number given in this epoch
  bool interrupted_ FLEET_GUARDED_BY(mutex_) = false;   // whether the last next() was interrupted
  int64_t samples_ FLEET_GUARDED_BY(mutex_) = 0;
  double waiting_time_ FLEET_GUARDED_BY(mutex_) = 0;
  // Declared last: they use all of the above.
  std::vector<Worker> workers_ FLEET_GUARDED_BY(mutex_);
};

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
