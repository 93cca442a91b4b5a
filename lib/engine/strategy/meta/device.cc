#include "base/log.h"
#include "strategy/meta_optimizer.h"

namespace fleet {

// Options for opening the device (train/device_settings.h); they do not change the Program.
FLEET_META_OPTIMIZER(device) {
  def.help = "choice of convolution algorithms";
  def.fields = {"cudnn_exhaustive_search", "conv_workspace_size_limit",
                "cudnn_batchnorm_spatial_persistent"};
  def.check = [](const StrategyProto& proto, const PassContext&) {
    if (proto.cudnn_batchnorm_spatial_persistent()) {
      spdlog::warn(
          "strategy: cudnn_batchnorm_spatial_persistent has no effect: batch normalisation runs in "
          "fleetrun's own kernels, not in cuDNN's");
    }
  };
  def.when = "on a GPU, for convolutional networks that train for more than a few minutes";
  def.cost = "the search takes seconds at the start; the workspace takes memory";
}

}  // namespace fleet
