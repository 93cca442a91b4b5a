#include "backend/cuda/dnn_convolution.h"

#include <sstream>

#include "backend/cuda/dnn.h"

namespace fleet::cuda::dnn {
namespace {

constexpr int64_t kSum = 5;  // between the product and its bias

// The attributes of the operations of the three directions, which differ by name only.
struct Names {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t geometry, x, weight, y, alpha, beta;
};

Names names_of(Convolution::Direction direction) {
  switch (direction) {
    case Convolution::kForward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Convolution::kData:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Convolution::kWeight:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

Descriptor product(const Convolution& conv, int64_t y_id) {
  const Names names = names_of(conv.direction);
  Descriptor made(names.type);
  made.set(names.geometry, make_geometry(conv));
  made.set(names.x, make_tensor({kConvX, conv.x, conv.dtype}));
  made.set(names.weight, make_tensor({kConvWeight, conv.weight, conv.dtype}));
  // A sum that continues to its bias stays in the precision it was computed in.
  const bool is_virtual = y_id != kConvY;
  made.set(names.y,
           make_tensor({y_id, conv.y, is_virtual ? DType::kFloat32 : conv.dtype, is_virtual}));
  made.set(names.alpha, 1.0F);
  made.set(names.beta, 0.0F);
  made.finalize(conv.text());
  return made;
}

Descriptor add_bias(const Convolution& conv) {
  Descriptor add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  add.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  add.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
  add.finalize(conv.text());
  Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, add);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC,
           make_tensor({kSum, conv.y, DType::kFloat32, /*is_virtual=*/true}));
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
           make_tensor({kConvBias, {1, conv.y[1], 1, 1}, conv.dtype}));
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, make_tensor({kConvY, conv.y, conv.dtype}));
  made.finalize(conv.text());
  return made;
}

}  // namespace

Descriptor make_geometry(const Convolution& conv) {
  Descriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const Window& w = conv.window;
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  made.set_list(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, w.paddings);
  made.set_list(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, w.paddings);
  made.set_list(CUDNN_ATTR_CONVOLUTION_DILATIONS, w.dilations);
  made.set_list(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, w.strides);
  made.finalize(conv.text());
  return made;
}

std::string Convolution::text() const {
  static constexpr const char* kNames[] = {"conv forward", "conv data", "conv weight"};
  std::ostringstream out;
  out << kNames[direction] << ' ' << name_of(dtype) << " x" << x.text() << " weight"
      << weight.text() << " y" << y.text() << " strides " << window.strides[0] << ' '
      << window.strides[1] << " paddings " << window.paddings[0] << ' ' << window.paddings[1]
      << " dilations " << window.dilations[0] << ' ' << window.dilations[1]
      << (bias ? " bias" : "");
  return out.str();
}

Graph make_graph(const Convolution& conv) {
  std::vector<Descriptor> operations;
  operations.push_back(product(conv, conv.bias ? kSum : kConvY));
  if (conv.bias) operations.push_back(add_bias(conv));
  return Graph(std::move(operations), conv.text());
}

}  // namespace fleet::cuda::dnn
