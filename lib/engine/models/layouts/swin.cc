// Swin transformers, version 1 and 2: torchvision's names, timm's, and those of the authors
// (Microsoft).
#include <algorithm>

#include "models/weight_layout.h"

namespace fleet {
namespace {

std::string in_layers(const std::string& rest) {
  const size_t dot = rest.find('.');
  const int64_t number = std::stoll(rest.substr(0, dot));
  std::string part = rest.substr(dot + 1);
  if (number % 2 == 0) return "layers." + std::to_string(number / 2) + ".downsample." + part;
  replace_part({{".mlp.0.", ".mlp.fc1."}, {".mlp.3.", ".mlp.fc2."}}, &part);
  return "layers." + std::to_string(number / 2) + ".blocks." + part;
}

std::string swin_name_in_timm(const std::string& ours) {
  std::string name = ours;
  if (replace_start({{"features.0.0.", "patch_embed.proj."},
                     {"features.0.2.", "patch_embed.norm."},
                     {"head.", "head.fc."}},
                    &name)) {
    return ours.starts_with("head.fc.") ? ours : name;
  }
  return ours.starts_with("features.") ? in_layers(ours.substr(9)) : ours;
}

LayoutNames swin_in_timm(const TensorShapes& ours) {
  // Version 2 has no bias for keys: torchvision's is zero.
  const auto is_second = [](const auto& entry) {
    return entry.first.ends_with(".attn.logit_scale");
  };
  const bool second = std::any_of(ours.begin(), ours.end(), is_second);
  LayoutNames names;
  for (const auto& [name, shape] : ours) {
    const std::string timm = swin_name_in_timm(name);
    const std::string bias = ".attn.qkv.bias";
    if (second && timm.ends_with(bias)) {
      const std::string base = timm.substr(0, timm.size() - bias.size()) + ".attn.";
      const Shape third = {shape[0] / 3};
      names[name] = {{base + "q_bias", third}, {"", third}, {base + "v_bias", third}};
    } else {
      names[name] = {{timm, shape}};
    }
  }
  return names;
}

// The authors put the layer that merges pixels behind a stage, and timm in front of the next one.
std::string respelled_swin(const std::string& name, const LayoutNames&,
                           const std::vector<std::string>& in_file) {
  if (name == "head.weight" || name == "head.bias") return "head.fc" + name.substr(4);
  const auto is_first = [](const std::string& one) {
    return one.find("layers.0.downsample.") != std::string::npos;
  };
  const size_t downsample = name.find(".downsample.");
  if (!name.starts_with("layers.") || downsample == std::string::npos ||
      std::none_of(in_file.begin(), in_file.end(), is_first)) {
    return name;
  }
  const int64_t stage = std::stoll(name.substr(7, downsample - 7));
  return "layers." + std::to_string(stage + 1) + name.substr(downsample);
}

}  // namespace

FLEET_WEIGHT_LAYOUT(swin) {
  def.adamw = true;
  def.has = [](const std::string& network) { return network.starts_with("swin_"); };
  def.timm_networks = {
      {"swin_tiny_patch4_window7_224", "swin_t"}, {"swin_small_patch4_window7_224", "swin_s"},
      {"swin_base_patch4_window7_224", "swin_b"}, {"swinv2_tiny_window8_256", "swin_v2_t"},
      {"swinv2_small_window8_256", "swin_v2_s"},  {"swinv2_base_window8_256", "swin_v2_b"}};
  def.timm = swin_in_timm;
  def.respelled = respelled_swin;
  def.buffers = {".relative_position_index", ".relative_coords_table", ".attn_mask"};
}

}  // namespace fleet
