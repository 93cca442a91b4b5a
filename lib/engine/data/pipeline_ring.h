// The ring of batch buffers behind InputPipeline: batch b of the epoch is made in slot b % slots,
// as soon as the consumer has released the previous batch in that slot. Internal to data.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "base/mutex.h"
#include "data/batch_slot.h"
#include "data/pipeline.h"
#include "data/reader_meter.h"
#include "data/reader_worker.h"

namespace fleet::data {

// The consumer's calls are in pipeline.cc, the work of the threads in pipeline_workers.cc. Thread
// safety: as for InputPipeline.
class InputPipeline::Impl {
 public:
  Impl(std::unique_ptr<Source> source, AugmentChain chain, const Options& options);
  ~Impl() { end_workers(); }
  void set_class_weights(std::vector<float> weights);
  void set_merged_steps(int64_t steps);
  void start_epoch(int64_t epoch, int64_t first, std::optional<int64_t> step);
  const Batch* next(const std::atomic<int>* interrupt);
  bool at_end() const;
  const Batch* placeholder_batch();
  std::vector<int64_t> damaged() const;
  void stop();
  PipelineStats stats() const;
  ReaderWork reader_work() const;
  const Options& options() const { return options_; }
  const Sampler& sampler() const { return batches_.sampler(); }
  const Source& source() const { return *batches_.source(); }
  const std::vector<Column>& columns() const { return batches_.columns(); }
  const AugmentChain& chain() const { return batches_.chain(); }

 private:
  using Clock = std::chrono::steady_clock;
  using Slot = BatchSlot;
  using Worker = ReaderWorker;
  // A waiting thread checks the readers this often.
  static constexpr Clock::duration kPollInterval = std::chrono::milliseconds(200);

  // Whether the samples that are being made are no longer needed.
  void drop_work(bool on);
  // Waits until workers have made batch `index`. Returns false if `interrupt` ended the wait.
  bool wait_for_batch(const Slot& slot, int64_t index, const std::atomic<int>* interrupt)
      FLEET_REQUIRES(mutex_);
  // The synchronous reader: the consumer's own thread makes the batch. Returns false if `interrupt`
  // ended a wait for the storage.
  bool make_all(Slot& slot, int64_t index, const std::atomic<int>* interrupt)
      FLEET_REQUIRES(mutex_);
  bool tunes() const;
  // Call it after each batch that the consumer got, with the seconds that it waited for it.
  void tune(double waited) FLEET_REQUIRES(mutex_);

  void add_worker() FLEET_REQUIRES(mutex_);
  // Continues with fewer if the system refuses more.
  void add_workers_up_to(int threads) FLEET_REQUIRES(mutex_);
  void end_workers();
  std::shared_ptr<WorkContext> make_context(int number) const;
  void start(Worker* worker);
  void work(WorkContext& context);  // a worker's thread
  bool work_to_take() const FLEET_REQUIRES(mutex_);
  // Returns false if the pipeline is stopped.
  bool wait_for_work(WorkContext* context) FLEET_REQUIRES(mutex_);
  void take_work(WorkContext* context) FLEET_REQUIRES(mutex_);
  void finish_work(WorkContext* context, const std::exception_ptr& error) FLEET_REQUIRES(mutex_);
  // Call it when the slot's last sample has been made.
  void complete(Slot& slot, int64_t index) FLEET_REQUIRES(mutex_);
  // Waits up to kPollInterval; returns whether no worker is making samples.
  bool wait_until_idle() FLEET_REQUIRES(mutex_);
  Clock::duration timeout() const;
  // Moves work that a dead mount holds up to a new thread. Waiting threads call it.
  void watch_readers() FLEET_REQUIRES(mutex_);
  void abandon(Worker* worker, Clock::duration limit) FLEET_REQUIRES(mutex_);
  // These make the items of the context's chunk.
  std::exception_ptr make_timed(WorkContext& context);
  std::exception_ptr make_range(WorkContext& context);
  void make(WorkContext& context);

  const Options options_;
  BatchMaker batches_;                           // its epoch changes only while no worker is busy
  std::shared_ptr<WorkContext> inline_context_;  // used without threads
  int64_t chunk_ = 1;
  std::atomic<bool> abandon_{false};  // samples being made are no longer needed
  std::atomic<int64_t> making_ns_{0}, reading_ns_{0}, made_items_{0};

  mutable Mutex mutex_;
  ReaderMeter meter_ FLEET_GUARDED_BY(mutex_);
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

}  // namespace fleet::data
