// ConvNeXt, version 1 and 2: torchvision's names, timm's, and those of the authors (Meta).
#include "base/text.h"
#include "models/weight_layout.h"

namespace fleet {
namespace {

// "3.5.block.0.weight" of stage 1, block 5: "stages.1.blocks.5.conv_dw.weight".
std::string in_stage(const std::string& rest) {
  const size_t dot = rest.find('.');
  const int64_t number = std::stoll(rest.substr(0, dot));
  std::string name = rest.substr(dot + 1);
  if (number % 2 == 0) return "stages." + std::to_string(number / 2) + ".downsample." + name;
  const size_t block = name.find('.');
  std::string part = name.substr(block + 1);
  replace_start({{"block.0.", "conv_dw."},
                 {"block.2.", "norm."},
                 {"block.3.", "mlp.fc1."},
                 {"block.5.", "mlp.fc2."},
                 {"layer_scale", "gamma"},
                 {"grn.", "mlp.grn."}},
                &part);
  return "stages." + std::to_string(number / 2) + ".blocks." + name.substr(0, block) + "." + part;
}

LayoutTensor convnext_in_timm(const std::string& ours, const Shape& shape) {
  LayoutTensor tensor{ours, shape};
  if (ours.starts_with("features.0.")) {
    tensor.name = "stem." + ours.substr(11);
  } else if (ours.starts_with("features.")) {
    tensor.name = in_stage(ours.substr(9));
  } else {
    replace_start({{"classifier.0.", "head.norm."}, {"classifier.2.", "head.fc."}}, &tensor.name);
  }
  if (tensor.name.ends_with(".gamma")) tensor.shape = {shape.elements()};
  return tensor;
}

// The smallest networks have convolutions of 1 x 1 as their linear layers in timm.
bool has_convolutions_in_timm(const TensorShapes& ours) {
  constexpr int64_t kNano = 80;
  const auto own = ours.find("features.0.0.weight"), timm = ours.find("stem.0.weight");
  const auto stem = own != ours.end() ? own : timm;
  return stem != ours.end() && stem->second[0] <= kNano;
}

LayoutNames convnext_tensors_in_timm(const TensorShapes& ours) {
  LayoutNames names = renamed_to_timm(convnext_in_timm)(ours);
  if (!has_convolutions_in_timm(ours)) return names;
  for (auto& [name, tensors] : names) {
    LayoutTensor& tensor = tensors[0];
    const bool linear =
        tensor.name.ends_with(".mlp.fc1.weight") || tensor.name.ends_with(".mlp.fc2.weight");
    if (linear && tensor.shape.rank() == 2) tensor.shape = {tensor.shape[0], tensor.shape[1], 1, 1};
  }
  return names;
}

std::string respelled_convnext(const std::string& name, const LayoutNames&,
                               const std::vector<std::string>&) {
  std::string changed = name;
  if (replace_start({{"downsample_layers.0.", "stem."}}, &changed)) return changed;
  if (replace_start({{"downsample_layers.", "stages."}}, &changed)) {
    const size_t dot = changed.find('.', 7);
    return dot == std::string::npos ? name : changed.insert(dot, ".downsample");
  }
  if (replace_start({{"norm.", "head.norm."}}, &changed)) return changed;
  if (name == "head.weight" || name == "head.bias") return "head.fc" + name.substr(4);
  if (!changed.starts_with("stages.")) return name;
  const size_t dot = changed.find('.', 7);
  if (dot == std::string::npos || changed.compare(dot, 8, ".blocks.") == 0 ||
      changed.compare(dot, 12, ".downsample.") == 0) {
    return name;
  }
  changed.insert(dot, ".blocks");
  replace_part({{".dwconv.", ".conv_dw."},
                {".pwconv1.", ".mlp.fc1."},
                {".pwconv2.", ".mlp.fc2."},
                {".grn.gamma", ".mlp.grn.weight"},
                {".grn.beta", ".mlp.grn.bias"}},
               &changed);
  return changed;
}

}  // namespace

FLEET_WEIGHT_LAYOUT(convnext) {
  def.adamw = true;
  def.has = [](const std::string& network) { return network.starts_with("convnext"); };
  def.timm_networks = {
      {"convnext_tiny", "convnext_tiny"},        {"convnextv2_atto", "convnext_v2_atto"},
      {"convnextv2_femto", "convnext_v2_femto"}, {"convnextv2_pico", "convnext_v2_pico"},
      {"convnextv2_nano", "convnext_v2_nano"},   {"convnextv2_tiny", "convnext_v2_tiny"},
      {"convnextv2_base", "convnext_v2_base"}};
  def.timm = convnext_tensors_in_timm;
  def.respelled = respelled_convnext;
}

}  // namespace fleet
