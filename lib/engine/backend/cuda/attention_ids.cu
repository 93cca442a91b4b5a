#include "backend/cuda/attention_dnn.h"
#include "backend/cuda/types.h"

namespace fleet::cuda {
namespace {

__global__ void narrow(int64_t count, const int64_t* ids, int32_t* to) {
  const int64_t i = thread_index();
  if (i < count) to[i] = static_cast<int32_t>(ids[i]);
}

}  // namespace

void narrow_ids(int64_t count, const int64_t* ids, int32_t* to, cudaStream_t stream) {
  launch(narrow, blocks_for(count), kBlock, 0, stream, count, ids, to);
}

}  // namespace fleet::cuda
