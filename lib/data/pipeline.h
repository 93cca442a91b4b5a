// From a source to batches in memory: samples are read, decoded, augmented and normalised (or left
// as bytes, for a device that normalises them) into a ring of batch buffers, on the caller's thread
// or ahead of it on worker threads. What a batch holds depends on (seed, epoch, batch, rank, ranks)
// only, never on threads or timing.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "data/augment.h"
#include "data/sampler.h"
#include "data/source.h"

namespace fleet::data {

// One batch of one rank. All memory is the pipeline's.
struct Batch {
  float* images = nullptr;     // size x channels x height x width, normalised; or null, and
  uint8_t* pixels = nullptr;   // size x height x width x bytes_a_pixel(), not mirrored, with
  uint8_t* flips = nullptr;    // size: 1 where an image is to be mirrored left to right
  int64_t* labels = nullptr;   // size
  float* weights = nullptr;    // size: 1, or 0 for padding (tail; a damaged image in evaluation)
  uint64_t* keys = nullptr;    // size: sample_key(seed, epoch, sample), what dropout is keyed by
  int64_t* samples = nullptr;  // size: index in the source
  // By class, where set_class_weights() was called. In training times G / (their sum over the
  // labels of the G samples of all ranks' batches): the mean over all ranks' samples of the losses
  // weighted so is the weighted mean.
  const float* class_weights = nullptr;
  const std::string* why = nullptr;  // size: see Options::tells_damaged
  int64_t size = 0;
  ImageShape image;
  int64_t epoch = 0, index = 0;  // position: batch `index` of the epoch
  int64_t real = 0;              // how many weigh 1
  double data_time = 0;          // seconds that next() waited for it
};

// Of an image of bytes: grey 1, RGB 4, the last of which is 0.
inline int64_t bytes_a_pixel(const ImageShape& image) { return image.channels == 1 ? 1 : 4; }

struct PipelineStats {
  int64_t samples = 0;      // made so far, padding included
  int64_t damaged = 0;      // different damaged images in the batches given so far
  double waiting_time = 0;  // seconds that next() waited, in all
  int64_t queued = 0;       // finished batches that wait for the consumer
  int64_t capacity = 0;     // the most that can (data.prefetch); 0 without threads of its own
};

struct PipelineContext {
  int rank = 0, ranks = 1;
  uint64_t seed = 0;
  int64_t classes = 0;           // the model's; labels are checked against it. 0: not checked
  int64_t ignored_label = -100;  // that of samples which the loss leaves out: no class
  // Batches hold bytes: resized and cropped images rounded to 8 bits, for normalize_image.
  bool bytes = false;
  // Memory for the images of one batch that lives as long as the pipeline; called once for each of
  // the ring's buffers (data.prefetch + 1). Empty: the pipeline allocates, aligned to 64 bytes.
  std::function<void*(size_t bytes)> image_memory = {};
};

// One consumer thread; stop() may come from any thread.
class InputPipeline {
 public:
  struct Options {
    SamplerOptions sampler;  // samples is filled in from the source
    ImageShape image;        // of what comes out
    int threads = 1;         // workers, where asynchronous
    int prefetch = 2;        // finished batches to keep ahead
    bool async = true;
    bool fail_on_damaged = false;
    double read_timeout = 0;  // seconds after which a read that does not end is given up; 0: never
    int64_t ignored_label = -100;  // of a stand-in
    bool evaluation = false;  // a damaged image weighs 0 instead of counting as its replacement
    // An image that cannot be made is not replaced: it is black, weighs 0, and batches say why; ""
    // for the others.
    bool tells_damaged = false;
    bool speed_test =
        false;  // the first batch of an epoch is given again and again: the reader costs nothing
    bool bytes = false;
    std::function<void*(size_t bytes)> image_memory = {};
  };
  InputPipeline(std::unique_ptr<Source> source, AugmentChain chain, const Options& options);
  ~InputPipeline();
  InputPipeline(const InputPipeline&) = delete;

  // By label; before the first start_epoch(). Labels that are no class weigh 0.
  void set_class_weights(std::vector<float> weights);
  // Begins epoch e at batch `first`; drops what was being made. Needed once before the first
  // next().
  void start_epoch(int64_t epoch, int64_t first = 0);
  // The epoch's next batch, valid until the following next() or start_epoch(); null at its end,
  // after stop(), and where it waits while *interrupt is not 0. Rethrows what went wrong in a
  // worker: of an epoch, nothing more comes then.
  //
  // With threads, a file whose reading does not end within data.read_timeout counts as damaged. Its
  // thread is left behind: nobody can end a thread that waits for a dead mount in the kernel.
  const Batch* next(const std::atomic<int>* interrupt = nullptr);
  // Where next() gave null: whether the epoch is over (or stop() was called).
  bool at_end() const;
  // Where next() threw, or gave null before the end: in place of its batch, black images that the
  // loss and the metrics leave out, so that this rank can take part in one more step. It counts as
  // a batch of the epoch.
  const Batch* stand_in();
  // Ends workers after the sample in hand; a next() that waits returns null.
  void stop();

  int64_t batches() const;  // an epoch, the same on every rank
  int64_t samples() const;  // in the source
  int64_t batch_size() const;
  const ImageShape& image() const;
  const Source& source() const;
  PipelineStats stats() const;
  // Which samples were damaged in the batches given so far, or in place of such, ascending. Depends
  // on those batches only.
  std::vector<int64_t> damaged() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// The keys of the job file's "data" section for a source ("idx", "image_list", ...), without the
// "data." in front. kUsage naming the nearest source where there is no such one.
Schema data_schema(const std::string& source);

// Names of the classes by label: the source's, or data.class_names; none where neither has them.
// classes: the model's; 0: not checked. kUsage where the names do not fit.
std::vector<std::string> class_names(const Settings& data, const Source& source, int64_t classes);

// How often the samples of each class are trained on, or count: for class weights and sampling.
std::vector<int64_t> samples_by_class(const Source& source);

// Images without labels, in the source's order, as an evaluation sees them. Batches say which
// images could not be decoded (Options::tells_damaged). image: a dimension that is 0 comes from
// data.image, or else from the first image. A batch is never larger than the source.
std::unique_ptr<InputPipeline> make_prediction_pipeline(const Settings& data,
                                                        std::unique_ptr<Source> source,
                                                        ImageShape image,
                                                        const PipelineContext& context);

// The pipeline of one split as the settings (of data_schema()) say: training or evaluation. In
// evaluation each sample counts exactly once. Null where `train` is false and no test split is
// configured. kUsage with the reason where settings and data do not go together. Reads
// FLAGS_reader_queue_speed_test_mode from the environment (training only).
std::unique_ptr<InputPipeline> make_pipeline(const Settings& data, bool train,
                                             const PipelineContext& context);

}  // namespace fleet::data
