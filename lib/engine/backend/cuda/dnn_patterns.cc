#include "backend/cuda/dnn.h"
#include "backend/cuda/dnn_convolution.h"
#include "base/error.h"

namespace fleet::cuda::dnn {
namespace {

// Builds a graph operation by operation; tensors between them are virtual.
class Builder {
 public:
  explicit Builder(const Pattern& pattern) : p_(pattern), conv_(pattern.convolution) {}

  Graph forward() {
    const Tensor x = p_.transforms_x ? transformed() : stored(kConvX, conv_.x);
    const Tensor y = stored(kConvY, conv_.y);
    convolution(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
                {{CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, stored(kConvWeight, conv_.weight)},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y}});
    if (p_.sums_y) sums(y);
    return done();
  }

  Graph weight_gradient() {
    const Tensor x = p_.transforms_x ? transformed() : stored(kConvX, conv_.x);
    convolution(
        CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
        {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
        {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, x},
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, stored(kConvWeight, conv_.weight)},
         {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, stored(kConvY, conv_.y)}});
    return done();
  }

  Graph data_gradient() {
    const Tensor dx = p_.normalises_x ? between(conv_.x, DType::kFloat32) : stored(kConvX, conv_.x);
    convolution(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                 CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
                {{CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, dx},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, stored(kConvWeight, conv_.weight)},
                 {CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, stored(kConvY, conv_.y)}});
    if (p_.normalises_x) normalisation(dx);
    return done();
  }

 private:
  struct Names {
    cudnnBackendAttributeName_t geometry, alpha, beta;
  };
  using Argument = std::pair<cudnnBackendAttributeName_t, Tensor>;

  Tensor stored(int64_t id, const Shape& shape) const { return {id, shape, conv_.dtype}; }
  Tensor between(const Shape& shape, DType dtype) { return {next_++, shape, dtype, true}; }
  static Tensor channels(int64_t id, int64_t count, DType dtype = DType::kFloat32) {
    return {id, {1, count, 1, 1}, dtype};
  }

  Descriptor& add(cudnnBackendDescriptorType_t type, const std::vector<Argument>& arguments) {
    Descriptor& made = operations_.emplace_back(type);
    for (const auto& [name, tensor] : arguments) made.set(name, make_tensor(tensor));
    return made;
  }

  void convolution(cudnnBackendDescriptorType_t type, const Names& names,
                   const std::vector<Argument>& arguments) {
    Descriptor& made = add(type, arguments);
    made.set(names.geometry, make_geometry(conv_));
    made.set(names.alpha, 1.0F);
    made.set(names.beta, 0.0F);
    made.finalize(p_.text());
  }

  // y = mode(x, factor b), or mode(x) without b.
  Tensor pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor* b, const Tensor& y,
                   float factor = 1) {
    Descriptor description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    description.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    description.finalize(p_.text());
    std::vector<Argument> arguments = {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x},
                                       {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y}};
    if (b) arguments.emplace_back(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, arguments);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
    if (factor != 1) made.set(CUDNN_ATTR_OPERATION_POINTWISE_ALPHA2, factor);
    made.finalize(p_.text());
    return y;
  }

  Tensor transformed() {
    const int64_t count = conv_.x[1];
    const DType dtype = conv_.dtype;
    const Tensor scale = channels(kPatternScale, count, dtype);
    const Tensor bias = channels(kPatternBias, count, dtype);
    const Tensor x = stored(kConvX, conv_.x);
    const Tensor scaled = pointwise(CUDNN_POINTWISE_MUL, x, &scale, between(conv_.x, dtype));
    const Tensor moved = pointwise(CUDNN_POINTWISE_ADD, scaled, &bias, between(conv_.x, dtype));
    return pointwise(CUDNN_POINTWISE_RELU_FWD, moved, nullptr, between(conv_.x, dtype));
  }

  void sums(const Tensor& y) {
    const int64_t count = conv_.y[1];
    Descriptor& made =
        add(CUDNN_BACKEND_OPERATION_GEN_STATS_DESCRIPTOR,
            {{CUDNN_ATTR_OPERATION_GENSTATS_XDESC, y},
             {CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC, channels(kPatternSum, count)},
             {CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC, channels(kPatternSquares, count)}});
    const cudnnGenStatsMode_t mode = CUDNN_GENSTATS_SUM_SQSUM;
    made.set(CUDNN_ATTR_OPERATION_GENSTATS_MODE, CUDNN_TYPE_GENSTATS_MODE, 1, &mode);
    made.set(CUDNN_ATTR_OPERATION_GENSTATS_MATH_PREC, CUDNN_DATA_FLOAT);
    made.finalize(p_.text());
  }

  void normalisation(const Tensor& gradient) {
    const int64_t count = conv_.x[1];
    const Tensor image = stored(kPatternImage, conv_.x), dy = stored(kConvX, conv_.x);
    const Tensor mean = channels(kPatternMean, count), inverse = channels(kPatternInverse, count);
    const Tensor scale = channels(kPatternScale, count), bias = channels(kPatternBias, count);
    const auto next = [&] { return between(conv_.x, DType::kFloat32); };
    const Tensor centred = pointwise(CUDNN_POINTWISE_ADD, image, &mean, next(), -1);
    const Tensor normal = pointwise(CUDNN_POINTWISE_MUL, centred, &inverse, next());
    const Tensor scaled = pointwise(CUDNN_POINTWISE_MUL, normal, &scale, next());
    const Tensor moved = pointwise(CUDNN_POINTWISE_ADD, scaled, &bias, next());
    relu_gradient(gradient, moved, dy);
    Descriptor& made = add(
        CUDNN_BACKEND_OPERATION_BN_BWD_WEIGHTS_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC, image},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC, dy},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC, mean},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC, inverse},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC, scale},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC, channels(kPatternDScale, count)},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC, channels(kPatternDBias, count)},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC, channels(kPatternScaleDy, count)},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC, channels(kPatternScaleX, count)},
         {CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS, channels(kPatternConstant, count)}});
    made.set(CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MATH_PREC, CUDNN_DATA_FLOAT);
    made.finalize(p_.text());
  }

  // dx = gradient where moved > 0, otherwise 0.
  void relu_gradient(const Tensor& gradient, const Tensor& moved, const Tensor& dx) {
    Descriptor description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_RELU_BWD;
    description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    description.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    description.finalize(p_.text());
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR,
                           {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, moved},
                            {CUDNN_ATTR_OPERATION_POINTWISE_DYDESC, gradient},
                            {CUDNN_ATTR_OPERATION_POINTWISE_DXDESC, dx}});
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
    made.finalize(p_.text());
  }

  Graph done() { return Graph(std::move(operations_), p_.text()); }

  const Pattern& p_;
  const Convolution& conv_;
  std::vector<Descriptor> operations_;
  int64_t next_ = 100;
};

}  // namespace

std::string Pattern::text() const {
  return std::string(transforms_x ? "scale bias relu, " : "") + convolution.text() +
         (sums_y ? ", sums" : "") + (normalises_x ? ", relu and norm backwards" : "");
}

std::vector<Tensor> tensors_of(const Pattern& p) {
  const Convolution& conv = p.convolution;
  std::vector<Tensor> tensors = {{kConvX, conv.x, conv.dtype},
                                 {kConvWeight, conv.weight, conv.dtype},
                                 {kConvY, conv.y, conv.dtype}};
  const auto add = [&](std::initializer_list<int64_t> ids, int64_t channels, DType dtype) {
    for (int64_t id : ids) tensors.push_back({id, {1, channels, 1, 1}, dtype});
  };
  if (p.transforms_x) add({kPatternScale, kPatternBias}, conv.x[1], conv.dtype);
  if (p.sums_y) add({kPatternSum, kPatternSquares}, conv.y[1], DType::kFloat32);
  if (p.normalises_x) {
    tensors.push_back({kPatternImage, conv.x, conv.dtype});
    add({kPatternScale, kPatternBias, kPatternMean, kPatternInverse, kPatternDScale, kPatternDBias,
         kPatternScaleDy, kPatternScaleX, kPatternConstant},
        conv.x[1], DType::kFloat32);
  }
  return tensors;
}

Graph make_graph(const Pattern& pattern) {
  FLEET_CHECK(!pattern.convolution.bias, "a pattern must not contain a convolution with bias");
  Builder builder(pattern);
  switch (pattern.convolution.direction) {
    case Convolution::kForward:
      return builder.forward();
    case Convolution::kWeight:
      return builder.weight_gradient();
    case Convolution::kData:
      break;
  }
  return builder.data_gradient();
}

}  // namespace fleet::cuda::dnn
