// Copies of images with zeros around them, for convolutions that pad both sides differently.
#pragma once

#include <memory>

#include "backend/cuda/convolution.h"

namespace fleet::cuda {

// Bytes of the copy, at the start of a kernel's workspace; 0 if the problem is not padded.
size_t padded_image_bytes(const ConvolutionProblem& problem);

// An image and its copy. If the problem is not padded, the image itself is used.
class PaddedImage {
 public:
  // image: of own().in pixels.
  PaddedImage(const ConvolutionProblem& problem, void* image, void* workspace);

  void* data() const { return padded_ ? workspace_ : image_; }  // what the convolution uses
  void* rest() const { return static_cast<char*>(workspace_) + bytes_; }  // of the workspace
  // `product` with the copy filled before it, or with the image taken from the copy after it. Null
  // stays null.
  std::shared_ptr<Kernel> filled(std::shared_ptr<Kernel> product) const;
  std::unique_ptr<Kernel> cropped(std::unique_ptr<Kernel> product) const;

 private:
  std::shared_ptr<Kernel> copy(bool fills) const;

  Convolution own_;
  Shape padded_shape_;
  bool padded_;
  size_t bytes_;
  void *image_, *workspace_;
};

}  // namespace fleet::cuda
