// conv2d and its relatives for cuDNN: images NHWC, weights KRSC, small channel counts padded.
#pragma once

#include <optional>

#include "backend/cuda/channels.h"
#include "backend/cuda/dnn_kernel.h"
#include "backend/cuda/layouts.h"
#include "backend/cuda/native_convolution.h"

namespace fleet::cuda {

// The same convolution for our own kernels.
Convolution own_convolution_of(const dnn::Convolution& conv);

// One of the three operations (forward, data gradient, weight gradient): the cuDNN problem and the
// layouts of its arguments. Shapes are logical.
class ConvolutionProblem {
 public:
  using Direction = dnn::Convolution::Direction;
  ConvolutionProblem(Direction direction, const Attributes& attributes, const Shape& x,
                     const Shape& weight, const Shape& y, DType dtype);

  const dnn::Convolution& conv() const { return conv_; }
  const Convolution& own() const { return own_; }  // likewise for our own kernels
  // Whether conv2d uses our own kernel: for a depthwise convolution. kUnsupported if
  // use_cudnn=false requires one that does not exist.
  bool takes_own(const Attributes& attributes) const;
  // Whether conv() is a convolution without padding of a copy of x with zeros around it
  // (padded_image.h), because cuDNN wants the same padding on both sides. Not if takes_own().
  bool is_padded() const { return conv_.x[2] != x_[2] || conv_.x[3] != x_[3]; }
  // Whether conv2d is a product of patches (patch_convolution.h): windows that tile the image, in a
  // 16-bit type.
  bool takes_patches() const;
  int64_t channels() const { return x_[1]; }  // x's, without padding
  Layout x() const { return channels_last(x_, block_); }
  Layout weight() const { return channels_last(weight_, takes_patches() ? 1 : block_); }
  Layout y() const { return channels_last(conv_.y); }
  ChannelRows y_rows() const { return rows_of(conv_.y, conv_.dtype); }
  // The convolution that adds a bias of this type in the same pass, if cuDNN has one.
  std::optional<dnn::Convolution> with_bias(Device* device, DType bias) const;

 private:
  Shape x_, weight_;
  dnn::Convolution conv_;
  Convolution own_;
  int64_t block_;
};

// The weight's shape, from the attribute "kernel" of gradient operations.
Shape weight_shape(const Attributes& attributes, const Shape& x, const Shape& dy);

}  // namespace fleet::cuda
