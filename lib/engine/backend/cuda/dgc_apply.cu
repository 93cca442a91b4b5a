#include <cstring>

#include "backend/cuda/tables.h"
#include "ops/dgc.h"

namespace fleet {
namespace {

using cuda::Chunk;
using cuda::kBlock;

struct Tensor {
  float* parameter;
  int64_t encoded;  // start of its stretch in a rank's part
  int32_t sent;
};

__device__ float float_of(int32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

// Applies what one rank sent: one block per chunk of it. The indices of one stretch are distinct.
__global__ void descend(const Chunk* chunks, const Tensor* tensors, const int32_t* part,
                        const float* rate, float share) {
  const Chunk chunk = chunks[blockIdx.x];
  const Tensor tensor = tensors[chunk.tensor];
  const int32_t* places = part + tensor.encoded + chunk.begin;
  const int32_t* values = places + tensor.sent;
  for (int i = static_cast<int>(threadIdx.x); i < chunk.count; i += kBlock) {
    tensor.parameter[places[i]] -= *rate * (float_of(values[i]) * share);
  }
}

}  // namespace

FLEET_KERNEL(cuda, dgc_apply) {
  def.layouts = lay_out_parameters<LayoutQuery>;
  def.create = [](KernelContext& context) {
    const auto& counts = context.attributes().integers("counts");
    std::vector<Chunk> host_chunks;
    std::vector<Tensor> host_tensors;
    int64_t each = 0;  // words per rank's part
    for (int i = 0; i < static_cast<int>(counts.size()); ++i) {
      cuda::append_chunks(host_chunks, i, counts[i]);
      host_tensors.push_back(
          {context.outputs[i].as<float>(), each, static_cast<int32_t>(counts[i])});
      each += 2 * counts[i];
    }
    const cuda::Table<Chunk> chunks(context.device, host_chunks);
    const cuda::Table<Tensor> tensors(context.device, host_tensors);
    const float* rate = context.inputs[0].as<const float>();
    const int32_t* gathered = context.inputs[1].as<const int32_t>();
    const int64_t ranks = context.inputs[1].shape.elements() / each;
    return make_kernel([=](Stream& stream) {
      for (int64_t rank = 0; rank < ranks; ++rank) {  // the same order on every rank
        cuda::launch(descend, cuda::blocks_for(chunks.size(), 1), kBlock, 0,
                     cuda::stream_of(stream), chunks.data(), tensors.data(), gathered + rank * each,
                     rate, 1.0f / static_cast<float>(ranks));
      }
    });
  };
}

}  // namespace fleet
