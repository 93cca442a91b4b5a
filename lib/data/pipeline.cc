#include "data/pipeline.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/thread.h"
#include "data/sample_maker.h"

namespace fleet::data {
namespace {

using Clock = std::chrono::steady_clock;

// So many damaged images in a row are no accident.
constexpr int kReplacements = 100;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};

// A batch buffer of the ring.
struct Slot {
  Batch batch;
  std::unique_ptr<void, FreeMemory> owned_images;
  std::vector<uint8_t> flips;
  std::vector<int64_t> labels, samples;
  std::vector<float> weights;
  std::vector<uint64_t> keys;
  int64_t missing = 0;       // samples still to be made
  int64_t made = -1;         // the batch that is complete in here
  std::exception_ptr error;  // of a worker that made one of its samples
};

}  // namespace

// The ring: batch b of the epoch is made in slot b % slots, as soon as the batch before in that
// slot is no longer in the consumer's hands. All state below mutex_ is guarded by it, but for the
// content of a batch, which belongs to whoever makes it.
class InputPipeline::Impl {
 public:
  Impl(std::unique_ptr<Source> source, AugmentChain chain, const Options& options)
      : source_(std::move(source)),
        chain_(std::move(chain)),
        options_(options),
        sampler_(sampler_options(options, *source_)),
        slots_(options.async ? std::max(options.prefetch, 1) + 1 : 1) {
    FLEET_CHECK(options.image == chain_.image(),
                "chain and pipeline make images of different sizes");
    const int makers = options.async ? std::max(options.threads, 1) : 1;
    for (int i = 0; i < makers; ++i) {
      makers_.push_back(std::make_unique<SampleMaker>(*source_, chain_));
    }
    for (Slot& slot : slots_) prepare(slot);
    // Small enough that workers share a batch evenly, large enough that the lock is not felt.
    chunk_ = std::clamp<int64_t>(options.sampler.batch / (4 * makers), 1, 64);
    for (int i = 0; options.async && i < makers; ++i) {
      workers_.emplace_back("data-" + std::to_string(i), [this, i] { work(*makers_[i]); });
    }
  }

  ~Impl() {
    stop();
    workers_.clear();
  }

  void start_epoch(int64_t epoch, int64_t first) {
    FLEET_CHECK(first >= 0 && first <= sampler_.batches(), "the epoch has no such batch");
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    running_ = false;
    abandon_ = true;
    idle_.wait(lock, [&] { return busy_ == 0; });
    abandon_ = stopped_;
    sampler_.start_epoch(epoch);
    first_ = taken_ = given_ = released_ = first;
    next_item_ = 0;
    for (Slot& slot : slots_) slot.made = -1;
    running_ = true;
    work_there_.notify_all();
  }

  const Batch* next() {
    const auto start = Clock::now();
    std::unique_lock lock(mutex_);
    FLEET_CHECK(running_ || stopped_, "next() before start_epoch()");
    if (stopped_ || given_ == sampler_.batches()) return nullptr;
    // In the speed test the front of the queue is read and not popped.
    const int64_t wanted = options_.speed_test ? first_ : given_;
    Slot& slot = slots_[wanted % slots_.size()];
    if (!options_.speed_test) {
      released_ = given_;
      work_there_.notify_all();
    }
    if (options_.async) {
      ready_.wait(lock, [&] { return stopped_ || slot.made == wanted; });
    } else if (slot.made != wanted) {
      make_all(slot, wanted, lock);
    }
    if (stopped_) return nullptr;
    if (slot.error) std::rethrow_exception(slot.error);
    slot.batch.index = given_++;
    slot.batch.data_time = std::chrono::duration<double>(Clock::now() - start).count();
    waiting_time_ += slot.batch.data_time;
    return &slot.batch;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = abandon_ = true;
    work_there_.notify_all();
    ready_.notify_all();
  }

  PipelineStats stats() const {
    const std::lock_guard lock(mutex_);
    const int64_t front = options_.speed_test ? first_ : given_;
    const auto waits = [&](const Slot& slot) { return slot.made >= front; };
    return {.samples = samples_,
            .damaged = static_cast<int64_t>(damaged_.size()),
            .waiting_time = waiting_time_,
            .queued = std::count_if(slots_.begin(), slots_.end(), waits),
            .capacity = static_cast<int64_t>(slots_.size()) - 1};
  }

  const Options& options() const { return options_; }
  const Sampler& sampler() const { return sampler_; }
  int64_t samples() const { return source_->size(); }
  const Source& source() const { return *source_; }

 private:
  static SamplerOptions sampler_options(const Options& options, const Source& source) {
    SamplerOptions sampler = options.sampler;
    sampler.samples = source.size();
    return sampler;
  }

  void prepare(Slot& slot) {
    const int64_t size = options_.sampler.batch;
    slot.labels.resize(size);
    slot.samples.resize(size);
    slot.weights.resize(size);
    slot.keys.resize(size);
    Batch& batch = slot.batch;
    const size_t bytes = static_cast<size_t>(size) * image_bytes();
    void* memory = nullptr;
    if (options_.image_memory) {
      memory = options_.image_memory(bytes);
    } else {
      slot.owned_images.reset(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
      memory = slot.owned_images.get();
    }
    if (!memory) throw std::bad_alloc();
    if (options_.bytes) {
      slot.flips.resize(size);
      batch.pixels = static_cast<uint8_t*>(memory);
      batch.flips = slot.flips.data();
    } else {
      batch.images = static_cast<float*>(memory);
    }
    batch.labels = slot.labels.data();
    batch.samples = slot.samples.data();
    batch.weights = slot.weights.data();
    batch.keys = slot.keys.data();
    batch.size = size;
    batch.image = options_.image;
  }

  size_t image_bytes() const {  // of one image
    const ImageShape& image = options_.image;
    return options_.bytes ? size_t(image.height) * image.width * bytes_a_pixel(image)
                          : image.count() * sizeof(float);
  }

  bool make_image(SampleMaker& maker, Slot& slot, int64_t i, int64_t sample, uint64_t key,
                  std::string* why) {
    if (!options_.bytes) {
      return maker.make(sample, key, slot.batch.images + i * options_.image.count(), why);
    }
    bool flip = false;
    if (!maker.make_bytes(sample, key, slot.batch.pixels + i * image_bytes(), &flip, why)) {
      return false;
    }
    slot.flips[i] = flip ? 1 : 0;
    return true;
  }

  // With mutex_ held.
  void begin(Slot& slot, int64_t index) {
    slot.batch.epoch = sampler_.epoch();
    slot.batch.index = index;
    slot.missing = slot.batch.size;
    slot.made = -1;
    slot.error = nullptr;
  }

  // With mutex_ held: the slot's last sample is there.
  void complete(Slot& slot, int64_t index) {
    slot.batch.real = std::count(slot.weights.begin(), slot.weights.end(), 1.0f);
    slot.made = index;
    samples_ += slot.batch.size;
  }

  bool work_to_take() const {
    return running_ && taken_ < sampler_.batches() &&
           taken_ < released_ + static_cast<int64_t>(slots_.size());
  }

  void work(SampleMaker& maker) {
    std::unique_lock lock(mutex_);
    for (;;) {
      work_there_.wait(lock, [&] { return stopped_ || work_to_take(); });
      if (stopped_) return;
      const int64_t index = taken_, from = next_item_;
      Slot& slot = slots_[index % slots_.size()];
      if (from == 0) begin(slot, index);
      const int64_t end = next_item_ = std::min(from + chunk_, slot.batch.size);
      if (end == slot.batch.size) {
        ++taken_;
        next_item_ = 0;
      }
      ++busy_;
      lock.unlock();
      const std::exception_ptr error = make_range(maker, slot, index, from, end);
      lock.lock();
      if (error) slot.error = error;
      slot.missing -= end - from;
      if (slot.missing == 0) {
        complete(slot, index);
        ready_.notify_all();
      }
      if (--busy_ == 0) idle_.notify_all();
    }
  }

  // The synchronous reader: the consumer's own thread makes the batch.
  void make_all(Slot& slot, int64_t index, std::unique_lock<std::mutex>& lock) {
    begin(slot, index);
    lock.unlock();
    const std::exception_ptr error = make_range(*makers_[0], slot, index, 0, slot.batch.size);
    lock.lock();
    slot.error = error;
    complete(slot, index);
  }

  std::exception_ptr make_range(SampleMaker& maker, Slot& slot, int64_t index, int64_t from,
                                int64_t end) {
    try {
      for (int64_t i = from; i < end && !abandon_; ++i) make(maker, slot, index, i);
      return nullptr;
    } catch (...) {
      return std::current_exception();
    }
  }

  void make(SampleMaker& maker, Slot& slot, int64_t index, int64_t i) {
    const Pick pick = sampler_.pick(index, i);
    const uint64_t key = sample_key(options_.sampler.seed, sampler_.epoch(), pick.sample);
    int64_t sample = pick.sample;
    std::string why;
    // A damaged image is replaced by the one behind it in the source: the same for every rank and
    // thread.
    for (int replaced = 0; !make_image(maker, slot, i, sample, key, &why); ++replaced) {
      on_damaged(sample, why);
      if (replaced == kReplacements) {
        throw Error(ErrorCode::kUsage,
                    std::to_string(kReplacements) + " images in a row are damaged",
                    source_->name(sample), "check the data");
      }
      sample = (sample + 1) % source_->size();
    }
    const bool counts = pick.real && !(options_.evaluation && sample != pick.sample);
    slot.labels[i] = source_->label(sample);
    slot.samples[i] = sample;
    slot.keys[i] = key;
    slot.weights[i] = counts ? 1.0f : 0.0f;
  }

  void on_damaged(int64_t sample, const std::string& why) {
    const std::string name = source_->name(sample);
    if (options_.fail_on_damaged) {
      throw Error(ErrorCode::kUsage, "damaged image (" + why + ")", name,
                  "repair or remove it, or set data.on_damaged to skip");
    }
    {
      const std::lock_guard lock(mutex_);
      if (!damaged_.insert(sample).second) return;
    }
    spdlog::warn("{}: damaged image ({}); {}", name, why,
                 options_.evaluation ? "it does not count in the evaluation"
                                     : "the image behind it takes its place");
  }

  const std::unique_ptr<Source> source_;
  const AugmentChain chain_;
  const Options options_;
  Sampler sampler_;  // changes only while nobody is busy
  std::vector<std::unique_ptr<SampleMaker>> makers_;
  int64_t chunk_ = 1;
  std::atomic<bool> abandon_{false};  // samples in the making are not wanted any more

  mutable std::mutex mutex_;
  std::condition_variable work_there_, ready_, idle_;
  std::vector<Slot> slots_;
  bool running_ = false, stopped_ = false;
  int busy_ = 0;           // workers that make samples
  int64_t first_ = 0;      // the batch at which this epoch was begun
  int64_t taken_ = 0;      // batches handed out to workers wholly; the next is being handed out
  int64_t next_item_ = 0;  // of batch taken_
  int64_t released_ = 0;   // batches before this one are no longer in the consumer's hands
  int64_t given_ = 0;      // batches given to the consumer
  std::set<int64_t> damaged_;
  int64_t samples_ = 0;
  double waiting_time_ = 0;
  std::vector<Thread> workers_;  // last: they use all of the above
};

InputPipeline::InputPipeline(std::unique_ptr<Source> source, AugmentChain chain,
                             const Options& options)
    : impl_(std::make_unique<Impl>(std::move(source), std::move(chain), options)) {}
InputPipeline::~InputPipeline() = default;

void InputPipeline::start_epoch(int64_t epoch, int64_t first) { impl_->start_epoch(epoch, first); }
const Batch* InputPipeline::next() { return impl_->next(); }
void InputPipeline::stop() { impl_->stop(); }
int64_t InputPipeline::batches() const { return impl_->sampler().batches(); }
int64_t InputPipeline::samples() const { return impl_->samples(); }
int64_t InputPipeline::batch_size() const { return impl_->options().sampler.batch; }
const ImageShape& InputPipeline::image() const { return impl_->options().image; }
const Source& InputPipeline::source() const { return impl_->source(); }
PipelineStats InputPipeline::stats() const { return impl_->stats(); }

}  // namespace fleet::data
