// A batch buffer of the input pipeline's ring, and what fills it. Internal to data.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/augment.h"
#include "data/image_cache.h"
#include "data/pipeline.h"
#include "data/sample_maker.h"
#include "data/source.h"
#include "data/storage.h"

namespace fleet::data {

struct Damaged {
  int64_t sample;
  std::string why;
  bool unreadable = false;  // the file system refused to read it
};

// All methods may be called from any thread.
class DamagedSampleLog {
 public:
  struct Options {
    bool fail = false;        // the first damaged image is an error
    bool evaluation = false;  // a damaged image is excluded instead of replaced
    double read_timeout = 0;  // seconds
  };
  // The source must outlive it.
  DamagedSampleLog(const Source& source, const Options& options)
      : source_(source), options_(options) {}

  // Records that reading the sample never ended: it is not read again.
  void stalled(int64_t sample);
  // Whether reading this sample never ended, and the reason. kIo if there are many such samples.
  bool is_stalled(int64_t sample, std::string* why) const;
  // Whether so many in a row were tried for one place of a batch, all of them unreadable.
  bool all_unreadable(const std::vector<Damaged>& damaged) const;
  // Checks all samples tried for one place of a batch: kUsage if they are reason enough to end.
  void check(const std::vector<Damaged>& damaged) const;
  // Logs a line for each sample that has not been reported yet.
  void report(const std::vector<Damaged>& damaged);
  void report_slow(int64_t sample, int64_t seconds) const;

 private:
  const Source& source_;
  const Options options_;
  mutable Mutex mutex_;
  std::set<int64_t> named_ FLEET_GUARDED_BY(mutex_), stalled_ FLEET_GUARDED_BY(mutex_);
  std::atomic<bool> any_stalled_{false};
};

struct BatchSlot {
  Batch batch;
  std::vector<uint8_t> flips;
  // If images are mixed, one more item than the batch has: the image before the first one.
  std::vector<int64_t> labels, samples;
  std::vector<float> weights, class_weights;
  std::vector<int64_t> other_labels;
  std::vector<float> own_shares;
  std::vector<double> loss_weights;  // by sample, 0 for padding; empty without columns
  std::vector<std::string> why;      // reason for each image that could not be made, if requested
  std::vector<uint64_t> keys;
  std::set<int64_t> damaged;  // its damaged samples, and damaged ones tried as replacements
  int64_t missing = 0;        // samples still to make
  int64_t made = -1;          // the complete batch in this slot
  std::exception_ptr error;   // from a worker that made one of its samples

  struct Layout {
    int64_t size = 1;  // images
    ImageShape image;
    bool bytes = false;
    bool mixes = false;                 // images will be mixed
    std::vector<Column> columns = {};   // the source's
    std::vector<int64_t> lengths = {};  // that rows have, ascending; empty: one length
  };
  // Allocates memory for the images or columns, from image_memory if that is set.
  void prepare(const Layout& layout, const std::function<void*(size_t bytes)>& image_memory);
  size_t image_bytes() const;  // per image
  void* image_at(int64_t i);   // 0 <= i < size, or size: the image before the first one
  void blacken(int64_t i);     // makes image i black
  // Gives the rows of this batch length `i` of Layout::lengths; nothing without lengths.
  void set_length(int i);
  // The addresses of sample i in each of the source's columns, for Source::fill(). 0 <= i < size.
  std::vector<void*> columns_at(int64_t i);
  // Room for the mask of sample i, and the place of its labelled pixels; null without masks.
  uint8_t* mask_at(int64_t i);
  float* labelled_pixels_at(int64_t i);
  // Leaves no pixel of the mask labelled.
  void clear_mask(int64_t i);
  // Sets the sample's weights in the loss to 0.
  void clear_loss_weights(int64_t i);
  // Mixes all images, once all items are made. The last image of the batch is the one before the
  // first if `alone`: if no other rank has a part of the global batch.
  void mix(const BatchMix& mix, bool alone);
  // Black images of weight 0, with a label that the loss ignores.
  void blank(int64_t ignored_label);

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  using Allocate = std::function<void*(size_t bytes)>;
  void prepare_images(const Layout& layout, const Allocate& image_memory);
  void prepare_columns(const Layout& layout, const Allocate& image_memory);
  // Allocates with image_memory, if it is set, or on the heap, owned by *owned.
  static void* allocate(size_t bytes, const Allocate& image_memory,
                        std::unique_ptr<void, FreeMemory>* owned);
  std::byte* column_at(int index, int64_t i);
  int mask_ = -1, labelled_ = -1;  // indexes in batch.columns; -1: no masks
  void* memory_ = nullptr;         // memory of the images
  std::unique_ptr<void, FreeMemory> owned_, before_, owned_columns_;
  std::vector<int> column_of_;    // by the source's column: index in batch.columns; -1: none
  std::vector<Column> columns_;   // the source's, if rows have several lengths
  std::vector<int64_t> lengths_;  // Layout::lengths
};

// Mixes `count` images in place: image i with image i - 1 as it was before, image 0 with `before`.
// Normalised floats, channels x height x width.
void mix_images(float* images, int64_t count, const float* before, const ImageShape& image,
                const BatchMix& mix);
// Like the above, for bytes, height x width x `step`; rounded.
void mix_images(uint8_t* images, int64_t count, const uint8_t* before, const ImageShape& image,
                int64_t step, const BatchMix& mix);

// Makes the content of batches: samples, labels, keys and weights, replacements of damaged images,
// mixes. Threads may make() different items at once; set_class_weights() and start_epoch() must not
// run together with anything else.
class BatchMaker {
 public:
  BatchMaker(std::unique_ptr<Source> source, AugmentChain chain,
             const InputPipeline::Options& options);

  const std::shared_ptr<const Source>& source() const { return source_; }
  const AugmentChain& chain() const { return chain_; }
  const std::shared_ptr<ImageCache>& cache() const { return cache_; }
  const Sampler& sampler() const { return sampler_; }
  const std::vector<Column>& columns() const { return columns_; }
  bool has_images() const { return has_images_; }
  DamagedSampleLog& damage() { return damage_; }
  const std::shared_ptr<StorageState>& storage() const { return storage_; }
  bool upright() const { return options_.upright; }
  BatchSlot::Layout layout() const;
  // The items to make of each batch. To mix the first image, that of another rank is needed too.
  int64_t items() const { return options_.sampler.batch + (chain_.mixes() && !alone() ? 1 : 0); }

  // step: the training step of the epoch's batch 0.
  void start_epoch(int64_t epoch, int64_t step) {
    sampler_.start_epoch(epoch);
    first_step_ = step;
  }
  // See InputPipeline::set_class_weights() and set_merged_steps().
  void set_class_weights(std::vector<float> weights) { class_weights_ = std::move(weights); }
  void set_merged_steps(int64_t steps) { merged_steps_ = steps; }
  void prepare_class_weights(BatchSlot& slot) const;
  // Sets the length of the rows of batch `index` of the epoch.
  void set_length(BatchSlot& slot, int64_t index) const {
    slot.set_length(sampler_.length_class(index));
  }
  // Sets the denominators of batch `index` of the epoch. Not for two threads at once.
  void set_denominators(BatchSlot& slot, int64_t index);

  // Begins batch `index` of the epoch. Not for two threads at once.
  void begin(BatchSlot& slot, int64_t index);
  // Makes item i of the batch. A damaged image is replaced by the next one in the source: the same
  // for every rank and thread. Returns the damaged samples, if there are any. Throws what
  // SampleMaker::make() throws.
  std::vector<Damaged> make(SampleMaker& maker, BatchSlot& slot, int64_t index, int64_t i);
  // Mixes the images of the batch, once all its items are made.
  void mix(BatchSlot& slot, int64_t index) const;

 private:
  // Whether all samples of a global batch are made here.
  bool alone() const { return sampler_.global_batch() == options_.sampler.batch; }
  // The batches whose gradients one update of the parameters adds up.
  struct Update {
    int64_t first = 0;  // batch, counted from the start of epoch 0
    // Sums over the samples in all ranks' batches.
    double weights = 0;
    int64_t samples = 0;  // that do not pad a batch
  };
  // The update that includes batch `index` of the epoch.
  const Update& update_of(int64_t index);
  // The key for the source's random draws of a sample, which the sampler picked.
  uint64_t source_key(const Sampler& sampler, const Pick& pick) const;
  double sample_weight(const Sampler& sampler, const Pick& pick) const;
  void add_batches(const Sampler& sampler, int64_t from, int64_t end, Update* update) const;
  void scale_class_weights(BatchSlot& slot, int64_t index);
  void fill(BatchSlot& slot, int64_t i, const Pick& pick, bool real) const;
  void fill_columns(BatchSlot& slot, int64_t i, uint64_t key) const;
  bool make_image(SampleMaker& maker, BatchSlot& slot, int64_t i, int64_t sample, uint64_t key,
                  std::string* why);
  bool make_mask(SampleMaker& maker, BatchSlot& slot, int64_t i, int64_t sample, uint64_t key,
                 std::string* why);

  const std::shared_ptr<const Source> source_;
  const std::vector<Column> columns_;  // the source's
  // It has images, masks, other columns, weights in the loss.
  const bool has_images_, has_masks_, fills_, weighs_;
  const AugmentChain chain_;
  const InputPipeline::Options options_;
  DamagedSampleLog damage_;
  const std::shared_ptr<StorageState> storage_;
  Sampler sampler_;
  const std::shared_ptr<ImageCache> cache_;
  std::vector<float> class_weights_;  // by label; empty: not requested
  int64_t merged_steps_ = 1;
  int64_t first_step_ = 0;        // the training step of the epoch's batch 0
  std::optional<Update> update_;  // the last one that was asked for
};

}  // namespace fleet::data
