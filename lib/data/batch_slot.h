// A batch buffer of the input pipeline's ring. Internal to data.
#pragma once

#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "data/pipeline.h"

namespace fleet::data {

struct BatchSlot {
  Batch batch;
  std::vector<uint8_t> flips;
  std::vector<int64_t> labels, samples;
  std::vector<float> weights, class_weights;
  std::vector<std::string> why;  // of each image that could not be made, where that is told
  std::vector<uint64_t> keys;
  std::set<int64_t> damaged;  // samples of it that are, or that were tried in place of those
  int64_t missing = 0;        // samples still to be made
  int64_t made = -1;          // the batch that is complete in here
  std::exception_ptr error;   // of a worker that made one of its samples

  // Memory for `size` images, from image_memory where there is one.
  void prepare(int64_t size, const ImageShape& image, bool bytes,
               const std::function<void*(size_t bytes)>& image_memory);
  size_t image_bytes() const;  // of one image
  void blacken(int64_t i);     // image i
  // Black images that weigh nothing, with a label that the loss leaves out.
  void blank(int64_t ignored_label);

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  void* memory_ = nullptr;
  std::unique_ptr<void, FreeMemory> owned_;
};

}  // namespace fleet::data
