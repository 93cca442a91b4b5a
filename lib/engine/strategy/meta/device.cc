#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Options for opening the device (train/device_settings.h); they do not change the Program.
FLEET_META_OPTIMIZER(device) {
  def.help = "choice of convolution algorithms";
  def.fields = {"cudnn_exhaustive_search", "conv_workspace_size_limit",
                "cudnn_batchnorm_spatial_persistent"};
  def.create = [](const StrategyProto& proto,
                  const PassContext&) -> std::unique_ptr<MetaOptimizer> {
    if (proto.cudnn_batchnorm_spatial_persistent()) {
      spdlog::warn(
          "strategy: cudnn_batchnorm_spatial_persistent has no effect: batch normalisation runs in "
          "fleetrun's own kernels, not in cuDNN's");
    }
    return nullptr;
  };
  def.field_help = {
      {"cudnn_exhaustive_search",
       "cuDNN measures its algorithms for each shape and uses the fastest; false: heuristics "
       "choose. GPU only; also FLAGS_cudnn_exhaustive_search"},
      {"conv_workspace_size_limit",
       "MiB that an algorithm of cuDNN, or Winograd's method on a CPU, may use in addition to its "
       "operands; "
       "also FLAGS_conv_workspace_size_limit"},
      {"cudnn_batchnorm_spatial_persistent",
       "no effect, and a log line reports it: batch normalisation runs in fleetrun's own kernels"}};
  def.when = "on a GPU, for convolutional networks that train for more than a few minutes";
  def.cost = "the search takes seconds at the start; the workspace takes memory";
}

}  // namespace fleet
