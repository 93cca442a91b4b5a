#include "backend/cuda/convolution.h"

#include "base/error.h"

namespace fleet::cuda {

Convolution own_convolution_of(const dnn::Convolution& conv) {
  return {.dtype = conv.dtype,
          .batch = conv.x[0],
          .channels = conv.x[1],
          .filters = conv.y[1],
          .groups = conv.x[1] / conv.weight[1],
          .in = {conv.x[2], conv.x[3]},
          .out = {conv.y[2], conv.y[3]},
          .in_pixel = conv.x[1],
          .out_pixel = conv.y[1],
          .window = conv.window};
}

ConvolutionProblem::ConvolutionProblem(Direction direction, const Attributes& attributes,
                                       const Shape& x, const Shape& weight, const Shape& y,
                                       DType dtype)
    : x_(x),
      weight_(weight),
      // One channel to one channel is a depthwise convolution, whose kernel takes no padding.
      block_(x[1] == 1 && y[1] == 1 ? 1
                                    : channel_block(x[1], attributes.integer("groups"), dtype)) {
  conv_ = {.direction = direction,
           .window = window_of(attributes, weight[2], weight[3]),
           .x = stored(x, block_),
           .weight = stored(weight, block_),
           .y = y,
           .dtype = dtype};
  own_ = own_convolution_of(conv_);
  if (!is_depthwise(own_) && !conv_.window.is_symmetric()) {
    for (int d = 0; d < 2; ++d) {
      conv_.x[2 + d] += conv_.window.paddings[d] + conv_.window.ends[d];
      conv_.window.paddings[d] = conv_.window.ends[d] = 0;
    }
  }
  own_.relu = attributes.has("input_activation") && attributes.text("input_activation") == "relu";
}

bool ConvolutionProblem::takes_own(const Attributes& attributes) const {
  if (is_depthwise(own_)) return true;
  if (own_.relu) {
    throw Error(ErrorCode::kUnsupported,
                "conv2d: no built-in kernel fuses a relu for this convolution",
                "weight " + weight_.text(), "switch build_strategy.fuse_relu_depthwise_conv off");
  }
  if (attributes.boolean("use_cudnn")) return false;
  throw Error(ErrorCode::kUnsupported, "conv2d: use_cudnn=false needs a depthwise convolution",
              "weight " + weight_.text(), "remove use_cudnn=false");
}

bool ConvolutionProblem::takes_patches() const {
  const Window& w = conv_.window;
  if (conv_.dtype == DType::kFloat32 || own_.groups != 1 || own_.relu) return false;
  if (w.kernel[0] * w.kernel[1] == 1 || is_padded()) return false;
  for (int d = 0; d < 2; ++d) {
    if (w.strides[d] != w.kernel[d] || w.paddings[d] != 0 || w.dilations[d] != 1) return false;
    if (own_.in[d] != own_.out[d] * w.kernel[d]) return false;
  }
  return conv_.direction != Direction::kData || conv_.x == x_;  // padding of dx would stay unset
}

std::optional<dnn::Convolution> ConvolutionProblem::with_bias(Device* device, DType bias) const {
  if (bias != conv_.dtype) return std::nullopt;
  dnn::Convolution fused = conv_;
  fused.bias = true;
  if (!is_supported(device, fused)) return std::nullopt;
  return fused;
}

Shape weight_shape(const Attributes& attributes, const Shape& x, const Shape& dy) {
  const std::vector<int64_t>& kernel = attributes.integers("kernel");
  return {dy[1], x[1] / attributes.integer("groups"), kernel[0], kernel[1]};
}

}  // namespace fleet::cuda
