// Class activation maps: the places of an image that raise the logit of a class.
//
// Grad-CAM (Selvaraju et al. 2017, arXiv:1610.02391): with A_c the channels of the network's last
// map and a_c the mean over its places of d logit / d A_c, the map is relu(sum of a_c A_c),
// enlarged bilinearly to the size of the image and divided by its maximum. The last map is the
// input of the last pooling over all places, or of the flattening before the first fully connected
// layer. In a vision transformer it is the patches after the last block's first norm.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"
#include "train/job.h"

namespace fleet {

// The network of a job of images, evaluated, with the gradient of one logit of each sample. Not
// thread-safe.
class ClassActivation {
 public:
  // image: channels, height and width. The device must outlive it. The executor has initial
  // weights. kUsage if the model has no map, or one of a single place.
  ClassActivation(const Job& job, Device& device, int64_t batch, const Shape& image);

  Executor& executor() { return *executor_; }
  // images: a batch, normalised. classes: one per sample.
  void run(std::span<const std::byte> images, std::span<const int64_t> classes);
  // The map of sample i of the last run, height x width, from 0 to 1; 0 everywhere if no place
  // raises the logit.
  std::vector<float> map(int64_t i) const;

 private:
  std::vector<float> small_map(int64_t i) const;

  Shape image_shape_;
  VarId image_ = kNoVar, seed_ = kNoVar, map_ = kNoVar, gradient_ = kNoVar;
  int64_t classes_ = 0;
  int64_t channels_ = 0, height_ = 0, width_ = 0;  // the last map's
  int64_t prefix_ = -1;  // tokens in front of the patches; -1: the map is an image
  std::unique_ptr<Executor> executor_;
  std::vector<float> values_, gradients_;
};

}  // namespace fleet
