// resnet, resnext, wide_resnet and densenet: timm has torchvision's names.
#include "models/weight_layout.h"

namespace fleet {

FLEET_WEIGHT_LAYOUT(resnet) {
  def.has = [](const std::string& network) {
    return (network.starts_with("resnet") && network != "resnet20") ||
           network.starts_with("resnext") || network.starts_with("wide_resnet");
  };
}

// The names in torchvision's files: "denselayer1.norm.1.weight".
static std::string respelled_densenet(const std::string& name, const LayoutNames&,
                                      const std::vector<std::string>&) {
  std::string changed = name;
  replace_part({{".norm.1.", ".norm1."},
                {".norm.2.", ".norm2."},
                {".conv.1.", ".conv1."},
                {".conv.2.", ".conv2."}},
               &changed);
  return changed;
}

FLEET_WEIGHT_LAYOUT(densenet) {
  def.has = [](const std::string& network) { return network.starts_with("densenet"); };
  def.respelled = respelled_densenet;
}

// Networks that timm does not have, or has with other layers.
FLEET_WEIGHT_LAYOUT(googlenet) {
  def.has = [](const std::string& network) { return network == "googlenet"; };
  def.in_timm = false;
  def.unused = {"aux1.", "aux2."};
}

}  // namespace fleet
