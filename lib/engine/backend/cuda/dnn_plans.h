// Selects the cuDNN algorithm for a graph on a device, by heuristics or by measuring: once per
// process, and once per machine for measurements.
#pragma once

#include <functional>

#include "backend/cuda/device.h"
#include "backend/cuda/dnn.h"

namespace fleet::cuda::dnn {

// The plan for a graph under the device's options (deterministic, tensor_op_math,
// cudnn_exhaustive_search, conv_workspace_size_limit). The first call for a graph decides, if
// necessary by running it on scratch memory for the given tensors; later calls return the same
// plan. Null if cuDNN has none. Call it only while a Plan is built: it may allocate and wait.
//   key      one line that describes the graph completely
//   tensors  those bound to memory
std::shared_ptr<const Plan> find_plan(CudaDevice& device, const std::string& key,
                                      const std::function<Graph()>& make_graph,
                                      const std::vector<Tensor>& tensors);

}  // namespace fleet::cuda::dnn
