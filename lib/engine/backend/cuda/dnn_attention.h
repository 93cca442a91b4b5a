// Attention as a graph of cuDNN's: matmul, scale, masks, softmax, matmul, and its gradient, which
// cuDNN runs as one kernel of its own each.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exec/kernel.h"
#include "tensor/dtype.h"

namespace fleet::cuda::dnn {

class Graph;
struct Tensor;

// One call without window and dropout; elements of 16 bits. Tokens of q and dq are q_stride
// elements apart, those of k, v, dk and dv kv_stride; y and dy are [batch, tokens, heads, size],
// lse, delta float32 [batch, heads, tokens].
struct Attention {
  int64_t batch = 0, tokens = 0, heads = 0, kv_heads = 0, size = 0;
  int64_t q_stride = 0, kv_stride = 0;
  bool causal = false;
  bool documents = false;  // a query sees the keys of its own document only
  bool gradient = false;
  DType dtype = DType::kBFloat16;
  // All of this in one line.
  std::string text() const;
};

// Ids of an attention's tensors.
enum AttentionTensor : int64_t {
  kAttentionQ = 1,
  kAttentionK,
  kAttentionV,
  kAttentionY,
  kAttentionLse,
  kAttentionQueryDocuments,  // the documents' ids, int32 [batch, tokens], twice
  kAttentionKeyDocuments,
  kAttentionScale,   // float32, on the host
  kAttentionHidden,  // float32, on the host: kHiddenScore
  // The gradient:
  kAttentionOne,  // float32, on the host: 1
  kAttentionDy,
  kAttentionDelta,  // scratch, float32 [batch, heads, tokens]
  kAttentionDqSum,  // scratch, float32 [batch, heads, tokens, size]
  kAttentionDq,
  kAttentionDk,
  kAttentionDv,
};
// A score that hides its key. Finite, also times log2(e): the difference of two infinities would be
// NaN where a whole tile is hidden.
inline constexpr float kHiddenScore = -1e30f;

Graph make_graph(const Attention& attention);
// Its tensors that are bound to memory, scalars included.
std::vector<Tensor> tensors_of(const Attention& attention);

// Whether cuDNN runs it on this device: with the version that is loaded, under the device's
// options. Nothing without a device (null). The gradient's order of sums is not fixed, so a
// deterministic device has none.
bool is_supported(Device* device, const Attention& attention);
// Bytes of workspace of the chosen algorithm.
size_t workspace_of(Device* device, const Attention& attention);
// memory: for each of tensors_of() but the scalars, by id. scale: the factor of the scores.
std::unique_ptr<Kernel> make_kernel(Device& device, const Attention& attention, float scale,
                                    const std::vector<std::pair<int64_t, void*>>& memory,
                                    void* workspace);

}  // namespace fleet::cuda::dnn
