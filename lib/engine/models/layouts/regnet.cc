// RegNet: torchvision's names, and timm's.
#include "models/weight_layout.h"

namespace fleet {
namespace {

// "1.block1-0.f.a.0.weight": "s1.b1.conv1.conv.weight"
std::string regnet_block(const std::string& rest) {
  const size_t dot = rest.find('.'), dash = rest.find('-'), end = rest.find('.', dash);
  if (dash == std::string::npos || end == std::string::npos) return "trunk_output.block" + rest;
  const int64_t block = std::stoll(rest.substr(dash + 1, end - dash - 1)) + 1;
  std::string part = rest.substr(end + 1);
  replace_start({{"f.a.0.", "conv1.conv."},
                 {"f.a.1.", "conv1.bn."},
                 {"f.b.0.", "conv2.conv."},
                 {"f.b.1.", "conv2.bn."},
                 {"f.c.0.", "conv3.conv."},
                 {"f.c.1.", "conv3.bn."},
                 {"f.se.", "se."},
                 {"proj.0.", "downsample.conv."},
                 {"proj.1.", "downsample.bn."}},
                &part);
  return "s" + rest.substr(0, dot) + ".b" + std::to_string(block) + "." + part;
}

LayoutTensor regnet_in_timm(const std::string& ours, const Shape& shape) {
  LayoutTensor tensor{ours, shape};
  const std::string trunk = "trunk_output.block";
  if (ours.starts_with(trunk)) {
    tensor.name = regnet_block(ours.substr(trunk.size()));
  } else {
    replace_start({{"stem.0.", "stem.conv."}, {"stem.1.", "stem.bn."}, {"fc.", "head.fc."}},
                  &tensor.name);
  }
  return tensor;
}

}  // namespace

// timm's regnety_008 is another network than torchvision's regnet_y_800mf.
FLEET_WEIGHT_LAYOUT(regnet) {
  def.has = [](const std::string& network) { return network.starts_with("regnet"); };
  def.timm_networks = {{"regnety_004", "regnet_y_400mf"},  {"regnety_008_tv", "regnet_y_800mf"},
                       {"regnety_016", "regnet_y_1_6gf"},  {"regnety_032", "regnet_y_3_2gf"},
                       {"regnety_080_tv", "regnet_y_8gf"}, {"regnety_160", "regnet_y_16gf"},
                       {"regnety_320", "regnet_y_32gf"},   {"regnetx_004_tv", "regnet_x_400mf"},
                       {"regnetx_008", "regnet_x_800mf"},  {"regnetx_016", "regnet_x_1_6gf"},
                       {"regnetx_032", "regnet_x_3_2gf"},  {"regnetx_080", "regnet_x_8gf"}};
  def.timm = renamed_to_timm(regnet_in_timm);
}

}  // namespace fleet
