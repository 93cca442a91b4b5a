// Makes batches in memory from a source: reads, decodes, augments and normalises samples (or leaves
// them as bytes, for a device that normalises them) into a ring of batch buffers, on the caller's
// thread or ahead of it on worker threads. The content of a batch depends only on (seed, epoch,
// batch, rank, ranks), never on threads or timing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "data/augment.h"
#include "data/class_names.h"
#include "data/sampler.h"
#include "data/source.h"
#include "data/storage.h"

namespace fleet::data {

struct BatchColumn {
  std::string name;
  DType dtype = DType::kFloat32;
  std::span<std::byte> data;
};

// One batch of one rank. The pipeline owns all memory; a span that is not used is empty.
struct Batch {
  std::span<float> images;     // size x channels x height x width, normalised; or empty, and
  std::span<uint8_t> pixels;   // size x height x width x bytes_a_pixel(), not mirrored, with
  std::span<uint8_t> flips;    // size: 1 if the image is to be mirrored left to right
  std::span<int64_t> labels;   // size
  std::span<float> weights;    // size: 1, or 0 for padding (tail; a damaged image in evaluation)
  std::span<uint64_t> keys;    // size: sample_key(seed, epoch, sample), the key for dropout
  std::span<int64_t> samples;  // size: index in the source
  // By class, if set_class_weights() was called. For training, multiplied by n / (sum of the
  // weights over the labels of the n samples that one update of the parameters takes: those of all
  // ranks in all of its merged steps). Then the mean over these samples of the losses weighted so
  // equals the weighted mean.
  std::span<const float> class_weights;
  // If the augmentation mixes images (data::mixes_labels()): size each. The loss of a sample is
  // own_share * loss(label) + (1 - own_share) * loss(other label).
  std::span<int64_t> other_labels;
  std::span<float> own_shares;
  std::span<const std::string> why;  // size: see Options::reports_damaged
  // The source's other columns (Source::fill), each [size, shape...] in plain layout.
  std::vector<BatchColumn> columns;
  // The sum of the weights (Source::weight) of the samples that one update of the parameters takes,
  // divided by ranks * merged steps. A rank's loss in a step is sum(weight * loss) / denominator;
  // then its mean over ranks and merged steps is the loss of one large batch. Samples that pad the
  // batch count only if the source has no column "loss_weight". Not for evaluations.
  float denominator = 1;
  // Like denominator, for losses that count each sample once: the number of samples of the update
  // without padding, divided by ranks * merged steps.
  float sample_denominator = 1;
  double weight = 0;  // sum of Source::weight() of this batch's samples without padding
  // A column by the name of its feed: "image", "pixels", "flip", "label", "weight", "sample_key",
  // "class_weights", "other_label", "own_share", "denominator", "sample_denominator", or one of
  // `columns`. Empty if the batch lacks it.
  std::span<const std::byte> column(std::string_view name) const;
  int64_t size = 0;
  // Tokens of a row: one of Options::lengths, the same on all ranks; 0 without them. The
  // columns by length (Column::by_length) are [size, length, ...].
  int64_t length = 0;
  ImageShape image;
  int64_t epoch = 0, index = 0;  // position: batch `index` of the epoch
  int64_t real = 0;              // number of samples with weight 1
  double data_time = 0;          // seconds that next() waited for it
};

// Bytes per pixel of a byte image: grey 1, RGB 4 with a final 0.
inline int64_t bytes_a_pixel(const ImageShape& image) { return image.channels == 1 ? 1 : 4; }

struct PipelineStats {
  int64_t samples = 0;      // so far, padding included
  int64_t damaged = 0;      // distinct damaged images in the batches given so far
  double waiting_time = 0;  // total seconds that next() waited
  int64_t queued = 0;       // finished batches that wait for the consumer
  int64_t capacity = 0;     // limit of queued (data.prefetch); 0 without worker threads
  int64_t threads = 0;      // worker threads (data.threads); 0 without them
};

// The work of the threads that make batches, in total: says why batches come late.
struct ReaderWork {
  int64_t making_ns = 0;   // time in which they were at work
  int64_t reading_ns = 0;  // part of it: reading samples from the source
};

struct PipelineContext {
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  int64_t classes = 0;           // the model's, to check labels; 0: not checked
  int64_t ignored_label = -100;  // label of samples that the loss ignores; not a class
  int64_t vocabulary = 0;        // the model's, to check tokens; 0: not checked
  // Batches hold bytes: resized and cropped images rounded to 8 bits, for normalize_image.
  bool bytes = false;
  // Allocates memory for the images of one batch that lives as long as the pipeline; called once
  // for each buffer of the ring (data.prefetch + 1). Empty: the pipeline allocates, aligned to 64
  // bytes.
  std::function<void*(size_t bytes)> image_memory = {};
  size_t cache_bytes = 0;  // for data.cache=decoded, if data.cache_memory does not say it
};

// For one consumer thread; stop() may be called from any thread.
class InputPipeline {
 public:
  struct Options {
    SamplerOptions sampler;  // samples, and lengths if there are some, come from the source
    ImageShape image;        // the output's
    std::vector<int64_t> lengths = {};  // tokens of a row, ascending; empty: as in the columns
    int threads = 1;                    // worker threads, if asynchronous
    int prefetch = 2;                   // finished batches to keep ahead
    // If larger: may grow to this while the pipeline runs, when the consumer waits for batches.
    int max_threads = 0, max_prefetch = 0;
    size_t cache_bytes = 0;  // memory for decoded images; 0: no cache
    bool async = true;
    bool fail_on_damaged = false;
    // Seconds after which an unfinished read is abandoned, and a wait for storage that is away
    // ends; 0: never.
    double read_timeout = 0;
    int64_t ignored_label = -100;  // label of a stand-in
    bool evaluation = false;       // a damaged image gets weight 0 instead of being replaced
    // An image that cannot be made is not replaced: it is black and has weight 0, and the batch
    // contains the reason; "" for the other images.
    bool reports_damaged = false;
    bool speed_test =
        false;  // returns the first batch of an epoch again and again: reading costs nothing
    bool bytes = false;
    bool upright = false;  // as for Decoder
    std::function<void*(size_t bytes)> image_memory = {};
    WaitClock clock = {};  // for waiting until storage is back
  };
  InputPipeline(std::unique_ptr<Source> source, AugmentChain chain, const Options& options);
  ~InputPipeline();
  InputPipeline(const InputPipeline&) = delete;

  // By label; call before the first start_epoch(). Labels outside the classes have weight 0.
  void set_class_weights(std::vector<float> weights);
  // The consecutive batches whose gradients are added up before an update (gradient_merge), 1 or
  // more: updates end with training steps k - 1, 2k - 1... Call it before the first start_epoch().
  void set_merged_steps(int64_t steps);
  // Begins epoch e at batch `first`; drops unfinished work. Call it before the first next(). step:
  // the training step that batch `first` is for; null: that of a run that began with epoch 0 and
  // takes every batch.
  void start_epoch(int64_t epoch, int64_t first = 0, std::optional<int64_t> step = std::nullopt);
  // The epoch's next batch, valid until the following next() or start_epoch(). Null at the end of
  // the epoch, after stop(), and if it has to wait for 2 s while *interrupt is not 0. Rethrows
  // errors of a worker; the epoch then has no further batches.
  //
  // With threads, a file that cannot be read within data.read_timeout counts as damaged. Its thread
  // is abandoned: a thread that waits for a dead mount in the kernel cannot be stopped.
  //
  // If no sample can be read any longer, waits for data.read_timeout; then kIo.
  const Batch* next(const std::atomic<int>* interrupt = nullptr);
  // After next() has returned null: whether the epoch is over (or stop() was called).
  bool at_end() const;
  // After next() has thrown, or returned null before the end: a substitute for its batch, with
  // black images that loss and metrics ignore, so that this rank can take part in one more step.
  // Counts as a batch of the epoch.
  const Batch* placeholder_batch();
  // Ends each worker after its current sample; a waiting next() returns null.
  void stop();

  int64_t batches() const;  // per epoch, the same on every rank
  int64_t samples() const;  // in the source
  int64_t batch_size() const;
  const ImageShape& image() const;              // 0 x 0 x 0 if the source has no images
  const std::vector<int64_t>& lengths() const;  // Options::lengths
  const std::vector<Column>& columns() const;   // the source's
  const Source& source() const;
  const AugmentChain& chain() const;
  PipelineStats stats() const;
  ReaderWork work() const;  // takes no lock
  // The damaged samples in the batches given so far, including damaged replacements, ascending.
  // Depends only on those batches.
  std::vector<int64_t> damaged() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The keys of the job file's "data" section for a source ("idx", "image_list", ...), without the
// prefix "data.". kUsage naming the nearest source if it is unknown.
Schema data_schema(const std::string& source);

// Replaces short forms of keys: data.threads=auto, data.prefetch=auto, data.reader=sync or async.
// kUsage for another kind of reader.
void expand_reader_keys(ConfigTree* tree);

// The chain of evaluations and predictions (data.eval).
AugmentChain evaluation_chain(const Settings& data, const ImageShape& image);

// The columns of the samples, as the source declares them for these settings. Opens no data.
std::vector<Column> declared_columns(const Settings& data, const PipelineContext& context);

// kUsage naming a key of data.* that is about images, if these columns have none.
void check_image_keys(const Settings& data, const std::vector<Column>& columns);

// The source of one split as configured by the settings, without data.validation_split. Null if
// `train` is false and no test split is configured. Errors as of make_pipeline().
std::unique_ptr<Source> open_split(const Settings& data, bool train, bool verbose,
                                   const PipelineContext& context);

// The samples to predict that these words name: images, or what the job's source makes of them
// (SourceType::unlabelled). kUsage if the source's data cannot be predicted, or if the words name
// no sample; kIo, kNotFound.
UnlabelledSamples open_unlabelled(const Settings& data, const std::vector<std::string>& words,
                                  const PipelineContext& context);

// Samples without labels, in the source's order, prepared as in an evaluation. Batches name the
// images that could not be decoded (Options::reports_damaged). image: dimensions that are 0 come
// from data.image, or else from the first image. A batch is never larger than the source.
std::unique_ptr<InputPipeline> make_prediction_pipeline(const Settings& data,
                                                        std::unique_ptr<Source> source,
                                                        ImageShape image,
                                                        const PipelineContext& context);

// data.exif: whether images are turned upright.
bool makes_upright(const Settings& data);

// Whether the settings name data of their own for evaluation.
bool names_test_data(const Settings& data);

// The data of a job, as far as its settings tell.
struct DataOutline {
  ImageShape image;  // dimensions that only the first image tells are 0; all 0 without images
  std::vector<int64_t> lengths;  // tokens of a row (data/lengths.h)
  std::vector<Column> columns;
  bool has_test = false;  // false: there are certainly no test data
};
// Checks the settings of both splits as make_pipeline() does, as far as that needs no data: opens
// no file. Errors kUsage of make_pipeline().
DataOutline check_data_settings(const Settings& data, const PipelineContext& context);

// The pipeline of one split, training or evaluation, as configured by the settings (of
// data_schema()). In evaluation each sample counts exactly once. Null if `train` is false and no
// test split is configured. kUsage with the reason if settings and data do not match. Reads
// FLAGS_reader_queue_speed_test_mode from the environment (training only).
std::unique_ptr<InputPipeline> make_pipeline(const Settings& data, bool train,
                                             const PipelineContext& context);

}  // namespace fleet::data
