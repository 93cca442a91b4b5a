// Which of cuDNN's algorithms runs a graph on a device: by heuristics or by measuring, decided once
// a process, and what was measured once a machine.
#pragma once

#include <functional>

#include "backend/cuda/device.h"
#include "backend/cuda/dnn.h"

namespace fleet::cuda::dnn {

// The plan for a graph under the device's options (deterministic, tensor_op_math,
// cudnn_exhaustive_search, conv_workspace_size_limit). The first call for a graph decides, also by
// running it on scratch memory of the given tensors; later ones get the same plan. Null where cuDNN
// has none. Only while a Plan is made: it may allocate and wait.
//   key      one line that says all about the graph
//   tensors  that are bound to memory
std::shared_ptr<const Plan> find_plan(CudaDevice& device, const std::string& key,
                                      const std::function<Graph()>& make_graph,
                                      const std::vector<Tensor>& tensors);

}  // namespace fleet::cuda::dnn
