// resnet, resnext, wide_resnet and densenet: timm has torchvision's names.
#include "models/weight_layout.h"

namespace fleet {

FLEET_WEIGHT_LAYOUT(resnet) {
  def.has = [](const std::string& network) {
    return (network.starts_with("resnet") && network != "resnet20") ||
           network.starts_with("resnext") || network.starts_with("wide_resnet");
  };
}

FLEET_WEIGHT_LAYOUT(densenet) {
  def.has = [](const std::string& network) { return network.starts_with("densenet"); };
}

// Networks that timm does not have, or has with other layers.
FLEET_WEIGHT_LAYOUT(googlenet) {
  def.has = [](const std::string& network) { return network == "googlenet"; };
  def.in_timm = false;
}

}  // namespace fleet
