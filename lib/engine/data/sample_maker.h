// Makes one image of a batch from one sample of a source.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/running_clock.h"
#include "data/augment.h"
#include "data/decode.h"
#include "data/exact_resize.h"
#include "data/image_cache.h"
#include "data/image_view.h"
#include "data/mask_maker.h"
#include "data/resize.h"
#include "data/source.h"
#include "data/storage.h"

namespace fleet::data {

// Thrown in an abandoned thread. The thread must end, and may access only objects that it owns.
struct ReadAbandoned {};

// A thread that reads from a dead mount cannot be stopped in the kernel, so it is abandoned. That
// thread calls begin() and end(); the other methods are for a thread that watches it.
class ReadWatchdog {
 public:
  using Clock = std::chrono::steady_clock;

  void begin(int64_t sample) {
    const MutexLock lock(mutex_);
    sample_ = sample;
    since_ = running_now();
    reads_ = true;
    named_ = false;
  }
  // Throws ReadAbandoned if the thread was abandoned.
  void end() {
    const MutexLock lock(mutex_);
    reads_ = false;
    if (given_up_) throw ReadAbandoned();
  }

  // Whether it has been reading one sample for at least `limit`; true once per read, for a log
  // line.
  bool is_slow(Clock::duration limit, int64_t* sample) {
    const MutexLock lock(mutex_);
    if (!reads_for(limit) || named_) return false;
    *sample = sample_;
    return named_ = true;
  }
  // Abandons the thread if it has been reading one sample for at least `limit`; returns whether it
  // did.
  bool abandon(Clock::duration limit, int64_t* sample) {
    const MutexLock lock(mutex_);
    if (!reads_for(limit)) return false;
    *sample = sample_;
    return given_up_ = true;
  }

 private:
  bool reads_for(Clock::duration limit) const FLEET_REQUIRES(mutex_) {
    return reads_ && !given_up_ && running_now() - since_ >= limit;
  }

  Mutex mutex_;
  int64_t sample_ FLEET_GUARDED_BY(mutex_) = 0;
  Clock::time_point since_ FLEET_GUARDED_BY(mutex_);
  bool reads_ FLEET_GUARDED_BY(mutex_) = false;
  bool named_ FLEET_GUARDED_BY(mutex_) = false;
  bool given_up_ FLEET_GUARDED_BY(mutex_) = false;
};

// Holds a decoder and scratch memory: use one per thread. Source and chain must outlive it.
class SampleMaker {
 public:
  // cache: for decoded images, or null. With it, images are always decoded as a whole and in full
  // size, so that a sample is the same whether it was in the cache or not.
  // storage: shared by the readers of a source, or null. upright: as for Decoder.
  SampleMaker(const Source& source, const AugmentChain& chain,
              std::shared_ptr<ImageCache> cache = nullptr,
              std::shared_ptr<StorageState> storage = nullptr, bool upright = false);
  // Writes sample `index`, augmented by the draws of `key`, as normalised floats to out
  // (chain.image()). Returns false, and the reason in *why, if it cannot be read or is damaged.
  // ImageSizeError if it is of another size and nothing resizes it; kUsage if raw pixels have other
  // channels. If no sample can be read, waits for the storage; then kIo (storage.h). Throws
  // ReadAbandoned and ReadCancelled.
  bool make(int64_t index, uint64_t key, float* out, std::string* why);
  // Like the above, as bytes, height x width x bytes_a_pixel() (pipeline.h), rounded. *flip tells
  // the normalising device whether to mirror it: never if the augmentation depends on where pixels
  // lie.
  bool make_bytes(int64_t index, uint64_t key, uint8_t* out, bool* flip, std::string* why);
  // Writes the mask of the sample that was made last, by the same draws (mask_maker.h). As make().
  bool make_mask(int64_t index, uint64_t key, uint8_t* out, int64_t* labelled, std::string* why);
  // Whether the last sample could not be made because the file system refused to read it.
  bool unreadable() const { return unreadable_; }
  ReadWatchdog& watchdog() { return watchdog_; }
  int64_t reading_ns() const { return reading_ns_; }  // total time of reading from the source

 private:
  struct Target;  // the output that make() and make_bytes() request
  Sample read_once(int64_t index);
  bool others_answer(int64_t index);
  bool read(int64_t index, Sample* sample, std::string* why) {
    return read(
        index, [&] { *sample = read_once(index); }, why);
  }
  bool read(int64_t index, const std::function<void()>& once, std::string* why);
  MaskFile read_mask_once(int64_t index);
  bool make_planes(int64_t index, uint64_t key, const Target& target, std::string* why);
  Pixels pixels_of(const Sample& sample, int64_t index);
  bool decode(int64_t index, const CropGeometry& geometry, Pixels* pixels);

  const Source& source_;
  const AugmentChain& chain_;
  const ViewedSource* const viewed_;  // null: the source has one view of each image
  const std::shared_ptr<ImageCache> cache_;
  const std::shared_ptr<StorageState> storage_;
  bool unreadable_ = false;
  bool colours_;
  bool mirrors_;  // must mirror bytes itself
  std::vector<float> unit_scale_, byte_scale_,
      zero_bias_;  // scale to [0, 1] for colour changes; scale that changes nothing
  ReadWatchdog watchdog_;
  int64_t reading_ns_ = 0;
  Decoder decoder_;
  CropGeometry geometry_;  // the last image's
  Resizer resizer_;
  ExactResizer exact_resizer_;
  MaskMaker mask_maker_;
  std::vector<uint8_t> scratch_, spread_, mask_bytes_;
  std::vector<float> planes_;  // an image that is converted to bytes
};

// Height, width and channels of the first readable sample of a source; an encoded image counts as
// RGB. upright: as for Decoder. kUsage if none of the first ones is readable.
ImageShape first_shape(const Source& source, bool upright = false);

}  // namespace fleet::data
