// The graphs are those that NVIDIA's cudnn-frontend builds for scaled dot product attention, which
// cuDNN recognises by their shape.
#include "backend/cuda/dnn_attention.h"

#include <sstream>

#include "backend/cuda/dnn.h"

namespace fleet::cuda::dnn {
namespace {

using Strides = std::vector<int64_t>;

// A tensor that has a descriptor already.
struct Node {
  Tensor tensor;
  Descriptor descriptor;
};

class AttentionBuilder {
 public:
  explicit AttentionBuilder(const Attention& attention)
      : a_(attention), tensors_(tensors_of(attention)) {
    for (const Tensor& tensor : tensors_) nodes_.push_back(describe(tensor));
  }

  Graph forward() {
    const int scores = multiply_scale(product(stored(kAttentionQ), stored(kAttentionK), scores_()));
    const int masked = mask(scores);
    const int top = reduce(CUDNN_REDUCE_TENSOR_MAX, masked, rows());
    const int powers =
        pointwise(CUDNN_POINTWISE_EXP, pointwise(CUDNN_POINTWISE_SUB, masked, top, scores_()),
                  kNone, scores_());
    const int sum = reduce(CUDNN_REDUCE_TENSOR_ADD, powers, rows());
    const int logarithm = pointwise(CUDNN_POINTWISE_LOG, sum, kNone, rows());
    pointwise(CUDNN_POINTWISE_ADD, top, logarithm, stored(kAttentionLse));
    product(pointwise(CUDNN_POINTWISE_DIV, powers, sum, scores_(type_of(a_.dtype))),
            stored(kAttentionV), stored(kAttentionY));
    return done();
  }

  Graph backward() {
    const int64_t b = a_.batch, h = a_.heads, s = a_.tokens, d = a_.size;
    const int products =
        pointwise(CUDNN_POINTWISE_MUL, stored(kAttentionDy), stored(kAttentionY),
                  between({b, h, s, d}, {h * s * d, s * d, h * d, 1}, CUDNN_DATA_FLOAT));
    pointwise(CUDNN_POINTWISE_MUL, reduce(CUDNN_REDUCE_TENSOR_ADD, products, rows()),
              stored(kAttentionOne), stored(kAttentionDelta));
    const int scores = multiply_scale(product(stored(kAttentionQ), stored(kAttentionK), scores_()));
    const int powers =
        pointwise(CUDNN_POINTWISE_EXP,
                  mask(pointwise(CUDNN_POINTWISE_SUB, scores, stored(kAttentionLse), scores_())),
                  kNone, scores_());
    product_over_group(transposed(powers), stored(kAttentionDy), kAttentionDv);
    const int differences = pointwise(CUDNN_POINTWISE_SUB,
                                      product(stored(kAttentionDy), stored(kAttentionV), scores_()),
                                      stored(kAttentionDelta), scores_());
    const int slopes =
        multiply_scale(pointwise(CUDNN_POINTWISE_MUL, differences, powers, scores_()));
    product_over_group(transposed(slopes), stored(kAttentionQ), kAttentionDk);
    const int keys =
        between({b, a_.kv_heads, s, d}, {s * a_.kv_stride, d, a_.kv_stride, 1}, type_of(a_.dtype));
    reshape(stored(kAttentionK), keys);
    product(slopes, keys, stored(kAttentionDqSum));
    pointwise(CUDNN_POINTWISE_IDENTITY, stored(kAttentionDqSum), kNone, stored(kAttentionDq));
    return done();
  }

 private:
  static constexpr int kNone = -1;

  static Node describe(const Tensor& tensor) { return {tensor, make_tensor(tensor)}; }

  int stored(int64_t id) const {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i].id == id) return static_cast<int>(i);
    }
    FLEET_CHECK(false, "an attention without tensor " + std::to_string(id));
  }

  int between(const Shape& shape, Strides strides, cudnnDataType_t type) {
    nodes_.push_back(describe({.id = next_++,
                               .shape = shape,
                               .dtype = a_.dtype,
                               .is_virtual = true,
                               .strides = std::move(strides),
                               .dnn_type = type}));
    return static_cast<int>(nodes_.size()) - 1;
  }
  int scores_(cudnnDataType_t type = CUDNN_DATA_FLOAT) {
    const int64_t h = a_.heads, s = a_.tokens;
    return between({a_.batch, h, s, s}, {h * s * s, s * s, s, 1}, type);
  }
  int rows() {
    return between({a_.batch, a_.heads, a_.tokens, 1}, {a_.heads * a_.tokens, a_.tokens, 1, 1},
                   CUDNN_DATA_FLOAT);
  }

  Descriptor& add(cudnnBackendDescriptorType_t type) {
    operations_.emplace_back(type);
    return operations_.back();
  }
  void set(Descriptor& operation, cudnnBackendAttributeName_t name, int node) {
    operation.set(name, nodes_[node].descriptor);
  }

  // y = mode(x, b), or mode(x, b, t); returns y. axis: of an index.
  int pointwise(cudnnPointwiseMode_t mode, int x, int b, int y,
                cudnnDataType_t precision = CUDNN_DATA_FLOAT, int t = kNone, int64_t axis = -1) {
    Descriptor description(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    description.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
    description.set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision);
    if (axis >= 0) description.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    description.finalize(a_.text());
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, description);
    set(made, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
    set(made, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (b != kNone) set(made, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
    if (t != kNone) set(made, CUDNN_ATTR_OPERATION_POINTWISE_TDESC, t);
    made.finalize(a_.text());
    return y;
  }

  int product(int a, int b, int c) {
    Descriptor description(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    description.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    description.finalize(a_.text());
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    set(made, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
    set(made, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
    set(made, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
    made.set(CUDNN_ATTR_OPERATION_MATMUL_DESC, description);
    made.finalize(a_.text());
    return c;
  }
  // The product, added up over the heads of a group of queries.
  void product_over_group(int left, int right, int64_t result) {
    if (a_.heads == a_.kv_heads) {
      product(left, right, stored(result));
      return;
    }
    const int64_t h = a_.heads, s = a_.tokens, d = a_.size;
    const int all = between({a_.batch, h, s, d}, {h * s * d, s * d, d, 1}, type_of(a_.dtype));
    reduce(CUDNN_REDUCE_TENSOR_ADD, product(left, right, all), stored(result));
  }

  int reduce(cudnnReduceTensorOp_t mode, int x, int y) {
    Descriptor description(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    description.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &mode);
    description.set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    description.finalize(a_.text());
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    set(made, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
    set(made, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, description);
    made.finalize(a_.text());
    return y;
  }

  void reshape(int x, int y) {
    Descriptor& made = add(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    set(made, CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
    set(made, CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    made.finalize(a_.text());
  }
  int transposed(int scores) {
    const int64_t h = a_.heads, s = a_.tokens;
    const int y = between({a_.batch, h, s, s}, {h * s * s, s * s, 1, s}, type_of(a_.dtype));
    reshape(scores, y);
    return y;
  }

  int multiply_scale(int scores) {
    return pointwise(CUDNN_POINTWISE_MUL, scores, stored(kAttentionScale), scores_());
  }

  int index(int scores, int64_t axis) {
    return pointwise(CUDNN_POINTWISE_GEN_INDEX, scores, kNone, scores_(CUDNN_DATA_INT32),
                     CUDNN_DATA_INT32, kNone, axis);
  }
  int hide_unless(int visible, int scores) {
    return pointwise(CUDNN_POINTWISE_BINARY_SELECT, scores, stored(kAttentionHidden), scores_(),
                     CUDNN_DATA_FLOAT, visible);
  }
  int mask(int scores) {
    if (a_.documents) {
      // Engines take a tensor as the second argument only, so both ids are added to an index.
      const int query = index(scores, 2);
      const auto plus = [&](int64_t ids) {
        return pointwise(CUDNN_POINTWISE_ADD, query, stored(ids), scores_(CUDNN_DATA_INT32),
                         CUDNN_DATA_INT32);
      };
      const int mine = plus(kAttentionQueryDocuments), theirs = plus(kAttentionKeyDocuments);
      scores = hide_unless(pointwise(CUDNN_POINTWISE_CMP_EQ, mine, theirs,
                                     scores_(CUDNN_DATA_BOOLEAN), CUDNN_DATA_BOOLEAN),
                           scores);
    }
    if (!a_.causal) return scores;
    const int query = index(scores, 2), key = index(scores, 3);
    return hide_unless(pointwise(CUDNN_POINTWISE_CMP_GE, query, key, scores_(CUDNN_DATA_BOOLEAN),
                                 CUDNN_DATA_BOOLEAN),
                       scores);
  }

  Graph done() { return Graph(std::move(operations_), a_.text()); }

  const Attention& a_;
  const std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;  // tensors_ first
  std::vector<Descriptor> operations_;
  int64_t next_ = 100;
};

}  // namespace

std::string Attention::text() const {
  std::ostringstream out;
  out << "attention" << (gradient ? " backwards" : "") << " of " << name_of(dtype) << " [" << batch
      << ", " << tokens << ", " << heads << " / " << kv_heads << ", " << size << "] strides "
      << q_stride << ' ' << kv_stride << (causal ? " causal" : "")
      << (documents ? " documents" : "");
  return out.str();
}

std::vector<Tensor> tensors_of(const Attention& a) {
  const int64_t b = a.batch, s = a.tokens, h = a.heads, d = a.size;
  const DType f = DType::kFloat32;
  const auto heads = [&](int64_t id, int64_t count, int64_t stride) {
    return Tensor{.id = id,
                  .shape = {b, count, s, d},
                  .dtype = a.dtype,
                  .strides = {s * stride, d, stride, 1}};
  };
  // k, and in the gradient v, are transposed by their strides.
  const auto columns = [&](int64_t id) {
    return Tensor{.id = id,
                  .shape = {b, a.kv_heads, d, s},
                  .dtype = a.dtype,
                  .strides = {s * a.kv_stride, d, 1, a.kv_stride}};
  };
  const auto scalar = [&](int64_t id) {
    return Tensor{
        .id = id, .shape = {1, 1, 1, 1}, .dtype = f, .is_scalar = true, .strides = {1, 1, 1, 1}};
  };
  const auto row = [&](int64_t id) {
    return Tensor{.id = id, .shape = {b, h, s, 1}, .dtype = f, .strides = {h * s, s, 1, 1}};
  };
  std::vector<Tensor> tensors = {
      heads(kAttentionQ, h, a.q_stride),
      columns(kAttentionK),
      a.gradient ? columns(kAttentionV) : heads(kAttentionV, a.kv_heads, a.kv_stride),
      heads(kAttentionY, h, h * d),
      row(kAttentionLse),
      scalar(kAttentionScale)};
  if (a.documents) {
    tensors.push_back({.id = kAttentionQueryDocuments,
                       .shape = {b, 1, s, 1},
                       .dtype = f,
                       .strides = {s, s, 1, 1},
                       .dnn_type = CUDNN_DATA_INT32});
    tensors.push_back({.id = kAttentionKeyDocuments,
                       .shape = {b, 1, 1, s},
                       .dtype = f,
                       .strides = {s, s, s, 1},
                       .dnn_type = CUDNN_DATA_INT32});
  }
  if (a.documents || a.causal) tensors.push_back(scalar(kAttentionHidden));
  if (!a.gradient) return tensors;
  for (Tensor& tensor : std::vector<Tensor>{
           scalar(kAttentionOne), heads(kAttentionDy, h, h * d), row(kAttentionDelta),
           Tensor{.id = kAttentionDqSum,
           .shape = {b, h, s, d},
           .dtype = f,
           .strides = {h * s * d, s * d, d, 1}},
           heads(kAttentionDq, h, a.q_stride), heads(kAttentionDk, a.kv_heads, a.kv_stride),
           heads(kAttentionDv, a.kv_heads, a.kv_stride)}) {
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Graph make_graph(const Attention& attention) {
  AttentionBuilder builder(attention);
  return attention.gradient ? builder.backward() : builder.forward();
}

}  // namespace fleet::cuda::dnn
