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
  std::vector<std::string> why;  // reason for each image that could not be made, if requested
  std::vector<uint64_t> keys;
  std::set<int64_t> damaged;  // its damaged samples, and damaged ones tried as replacements
  int64_t missing = 0;        // samples still to make
  int64_t made = -1;          // the complete batch in this slot
  std::exception_ptr error;   // from a worker that made one of its samples

  // Allocates memory for `size` images, from image_memory if that is set.
  void prepare(int64_t size, const ImageShape& image, bool bytes,
               const std::function<void*(size_t bytes)>& image_memory);
  size_t image_bytes() const;  // per image
  void blacken(int64_t i);     // makes image i black
  // Black images of weight 0, with a label that the loss ignores.
  void blank(int64_t ignored_label);

 private:
  struct FreeMemory {
    void operator()(void* memory) const { std::free(memory); }
  };
  void* memory_ = nullptr;
  std::unique_ptr<void, FreeMemory> owned_;
};

}  // namespace fleet::data
