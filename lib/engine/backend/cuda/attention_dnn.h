// attention and attention_grad through cuDNN, where it has a plan: 16-bit types, heads of up to 128
// elements, no window and no dropout (dnn_attention.h). Otherwise our own kernels run.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <optional>

#include "exec/kernel.h"

namespace fleet::cuda {

// Bytes; empty: cuDNN does not run it. For both operations.
std::optional<size_t> attention_dnn_workspace(LayoutQuery& query, bool gradient);
// Null: cuDNN does not run it.
std::unique_ptr<Kernel> make_attention_dnn(KernelContext& context, bool gradient);

// to[i] = the low 32 bits of ids[i].
void narrow_ids(int64_t count, const int64_t* ids, int32_t* to, cudaStream_t stream);

}  // namespace fleet::cuda
