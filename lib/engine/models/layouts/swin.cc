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

int64_t window_of_network(const std::string& network) {
  return network.starts_with("swin_v2_") ? 8 : 7;
}

void add_window(const std::string& network, int64_t window,
                std::map<std::string, std::string>* keys) {
  if (window > 0 && window != window_of_network(network)) {
    keys->emplace("window", std::to_string(window));
  }
}

// "swinv2_base_window12to16_192to256": trained with windows of 12, 12, 12 and 6, then of 16.
std::map<std::string, std::string> keys_of_architecture(const std::string& network,
                                                        const std::string& architecture) {
  std::map<std::string, std::string> keys = {{"window_rule", "timm"}};
  const int64_t first = number_behind("_window", architecture);
  const int64_t second = number_behind("_window" + std::to_string(first) + "to", architecture);
  add_window(network, second > 0 ? second : first, &keys);
  if (second > 0) {
    const std::string whole = std::to_string(first);
    keys.emplace("trained_windows", "[" + whole + ", " + whole + ", " + whole + ", " +
                                        std::to_string(first / 2) + "]");
  }
  return keys;
}

// A table of (2 w - 1)^2 offsets is of windows of w x w; those of the last stage may be smaller.
std::map<std::string, std::string> keys_of_swin_file(const std::string& network,
                                                     const TensorShapes& file) {
  std::map<std::string, std::string> keys;
  int64_t window = 0;
  for (const auto& [name, shape] : file) {
    // A network of timm or of the authors; torchvision's name is "features.1".
    if (name.find("layers.0.blocks.") != std::string::npos) keys["window_rule"] = "timm";
    if (!name.ends_with(".relative_position_bias_table") || shape.rank() != 2) continue;
    int64_t side = 1;
    while (side * side < shape[0]) ++side;
    if (side * side == shape[0]) window = std::max(window, (side + 1) / 2);
  }
  add_window(network, window, &keys);
  return keys;
}

}  // namespace

FLEET_WEIGHT_LAYOUT(swin) {
  def.adamw = true;
  def.has = [](const std::string& network) { return network.starts_with("swin_"); };
  // The record has the size of images, and the keys below the windows.
  def.timm_networks = {{"swin_tiny_patch4_window7_224", "swin_t"},
                       {"swin_small_patch4_window7_224", "swin_s"},
                       {"swin_base_patch4_window7_224", "swin_b"},
                       {"swin_base_patch4_window12_384", "swin_b"},
                       {"swinv2_tiny_window8_256", "swin_v2_t"},
                       {"swinv2_tiny_window16_256", "swin_v2_t"},
                       {"swinv2_small_window8_256", "swin_v2_s"},
                       {"swinv2_small_window16_256", "swin_v2_s"},
                       {"swinv2_base_window8_256", "swin_v2_b"},
                       {"swinv2_base_window12_192", "swin_v2_b"},
                       {"swinv2_base_window12to16_192to256", "swin_v2_b"},
                       {"swinv2_base_window12to24_192to384", "swin_v2_b"},
                       {"swinv2_base_window16_256", "swin_v2_b"}};
  def.timm = swin_in_timm;
  def.respelled = respelled_swin;
  def.model_keys = keys_of_architecture;
  def.keys_of_file = keys_of_swin_file;
  def.buffers = {".relative_position_index", ".relative_coords_table", ".attn_mask"};
}

}  // namespace fleet
