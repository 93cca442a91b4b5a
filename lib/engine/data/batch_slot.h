// A batch buffer of the input pipeline's ring. Internal to data.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "data/augment.h"
#include "data/pipeline.h"

namespace fleet::data {

struct BatchSlot {
  Batch batch;
  std::vector<uint8_t> flips;
  // If images are mixed, one more item than the batch has: the image before the first one.
  std::vector<int64_t> labels, samples;
  std::vector<float> weights, class_weights;
  std::vector<int64_t> other_labels;
  std::vector<float> own_shares;
  std::vector<std::string> why;  // reason for each image that could not be made, if requested
  std::vector<uint64_t> keys;
  std::set<int64_t> damaged;  // its damaged samples, and damaged ones tried as replacements
  int64_t missing = 0;        // samples still to make
  int64_t made = -1;          // the complete batch in this slot
  std::exception_ptr error;   // from a worker that made one of its samples

  struct Layout {
    int64_t size = 1;  // images
    ImageShape image;
    bool bytes = false;
    bool mixes = false;  // images will be mixed
  };
  // Allocates memory for the images, from image_memory if that is set.
  void prepare(const Layout& layout, const std::function<void*(size_t bytes)>& image_memory);
  size_t image_bytes() const;  // per image
  void* image_at(int64_t i);   // 0 <= i < size, or size: the image before the first one
  void blacken(int64_t i);     // makes image i black
  // Mixes all images, once all items are made. The last image of the batch is the one before the
  // first if `alone`: if no other rank has a part of the global batch.
  void mix(const BatchMix& mix, bool alone);
  // Black images of weight 0, with a label that the loss ignores.
  void blank(int64_t ignored_label);

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  void* memory_ = nullptr;
  std::unique_ptr<void, FreeMemory> owned_, before_;
};

// Mixes `count` images in place: image i with image i - 1 as it was before, image 0 with `before`.
// Normalised floats, channels x height x width.
void mix_images(float* images, int64_t count, const float* before, const ImageShape& image,
                const BatchMix& mix);
// The same for bytes, height x width x `step`; rounded.
void mix_images(uint8_t* images, int64_t count, const uint8_t* before, const ImageShape& image,
                int64_t step, const BatchMix& mix);

}  // namespace fleet::data
