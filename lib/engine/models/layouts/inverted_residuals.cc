// Networks of inverted residuals: mobilenet_v2 and v3, and efficientnet with v2 and lite:
// torchvision's names, timm's, and those of lukemelas/EfficientNet-PyTorch. mobilenet_v4 has
// timm's.
#include <algorithm>
#include <optional>

#include "base/text.h"
#include "models/weight_layout.h"

namespace fleet {
namespace {

// Our start of names, and timm's.
using Starts = std::vector<std::pair<std::string, std::string>>;

// The layers of one block in their order.
struct ConvLayer {
  std::string conv, norm;  // starts of their names
  Shape weight;
  bool depthwise() const { return weight[1] == 1 && weight[2] > 1; }
  bool full() const { return weight[1] > 1 && weight[2] > 1; }
};
struct BlockLayers {
  std::vector<ConvLayer> convs;
  std::string gate;  // squeeze and excitation; "": none
};

BlockLayers layers_of(const std::string& block, const TensorShapes& ours) {
  BlockLayers layers;
  for (int number = 0;; ++number) {
    const std::string at = block + std::to_string(number) + ".";
    if (const auto pair = ours.find(at + "0.weight"); pair != ours.end()) {
      layers.convs.push_back({at + "0.", at + "1.", pair->second});
    } else if (ours.contains(at + "fc1.weight")) {
      layers.gate = at;
    } else if (const auto conv = ours.find(at + "weight"); conv != ours.end()) {
      ++number;
      layers.convs.push_back({at, block + std::to_string(number) + ".", conv->second});
    } else {
      return layers;
    }
  }
}

// timm's names of the convolutions of a block.
std::vector<std::string> conv_names(const std::vector<ConvLayer>& convs) {
  const bool fused = convs[0].full();
  if (convs.size() == 1) return {"conv"};
  if (convs.size() == 2 && fused) return {"conv_exp", "conv_pwl"};
  if (convs.size() == 2) return {"conv_dw", "conv_pw"};
  return {"conv_pw", "conv_dw", "conv_pwl"};
}

void add_block(const std::string& block, const std::string& timm, const TensorShapes& ours,
               Starts* starts) {
  const BlockLayers layers = layers_of(block, ours);
  if (layers.convs.empty() || layers.convs.size() > 3) return;
  const std::vector<std::string> names = conv_names(layers.convs);
  for (size_t i = 0; i < names.size(); ++i) {
    starts->emplace_back(layers.convs[i].conv, timm + names[i] + ".");
    starts->emplace_back(layers.convs[i].norm, timm + "bn" + std::to_string(i + 1) + ".");
  }
  if (layers.gate.empty()) return;
  starts->emplace_back(layers.gate + "fc1.", timm + "se.conv_reduce.");
  starts->emplace_back(layers.gate + "fc2.", timm + "se.conv_expand.");
}

std::string feature(int64_t number) { return "features." + std::to_string(number) + "."; }

bool has_start(const TensorShapes& ours, const std::string& start) {
  const auto at = ours.lower_bound(start);
  return at != ours.end() && at->first.starts_with(start);
}

// Blocks per stage of networks whose blocks torchvision counts through: version 2, and 3 by size.
std::vector<int64_t> blocks_of_stages(const TensorShapes& ours) {
  if (has_start(ours, "features.1.conv.")) return {1, 2, 3, 4, 3, 3, 1};
  if (has_start(ours, "features.15.block.")) return {1, 2, 3, 4, 2, 3};
  return {1, 2, 3, 2, 3};
}

// Adds all blocks; returns the number of the feature behind them, and of timm's stages.
std::pair<int64_t, int64_t> add_blocks(const TensorShapes& ours, Starts* starts) {
  const auto timm = [](int64_t stage, int64_t block) {
    return "blocks." + std::to_string(stage) + "." + std::to_string(block) + ".";
  };
  if (has_start(ours, "features.1.0.block.")) {
    int64_t stage = 1;
    for (; has_start(ours, feature(stage) + "0.block."); ++stage) {
      for (int64_t i = 0; has_start(ours, feature(stage) + std::to_string(i) + ".block."); ++i) {
        add_block(feature(stage) + std::to_string(i) + ".block.", timm(stage - 1, i), ours, starts);
      }
    }
    return {stage, stage - 1};
  }
  const char* inner = has_start(ours, "features.1.conv.") ? "conv." : "block.";
  const std::vector<int64_t> stages = blocks_of_stages(ours);
  int64_t number = 1;
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (int64_t i = 0; i < stages[stage]; ++i, ++number) {
      add_block(feature(number) + inner, timm(static_cast<int64_t>(stage), i), ours, starts);
    }
  }
  return {number, std::ssize(stages)};
}

Starts starts_of(const TensorShapes& ours) {
  Starts starts = {{"features.0.0.", "conv_stem."}, {"features.0.1.", "bn1."}};
  if (!ours.contains("features.0.0.weight")) return {};  // it has timm's names
  const auto [last, stages] = add_blocks(ours, &starts);
  // Version 3 has a layer behind the pooling. A network of embeddings lacks the one behind that.
  if (ours.contains("classifier.0.weight")) {
    const std::string block = "blocks." + std::to_string(stages) + ".0.";
    starts.insert(starts.end(), {{feature(last) + "0.", block + "conv."},
                                 {feature(last) + "1.", block + "bn1."},
                                 {"classifier.0.", "conv_head."},
                                 {"classifier.3.", "classifier."}});
  } else {
    starts.insert(starts.end(), {{feature(last) + "0.", "conv_head."},
                                 {feature(last) + "1.", "bn2."},
                                 {"classifier.1.", "classifier."}});
  }
  return starts;
}

LayoutNames inverted_residuals_in_timm(const TensorShapes& ours) {
  const Starts starts = starts_of(ours);
  LayoutNames names;
  for (const auto& [name, shape] : ours) {
    LayoutTensor tensor{name, shape};
    replace_start(starts, &tensor.name);
    if (tensor.name == "conv_head.weight" && shape.rank() == 2)
      tensor.shape = {shape[0], shape[1], 1, 1};
    names[name] = {tensor};
  }
  return names;
}

// "blocks.2.1." of the block with this number, counted through all stages; "" if there is none.
std::string timm_block(int64_t number, const LayoutNames& timm) {
  std::vector<std::pair<int64_t, int64_t>> blocks;
  for (const auto& [ours, tensors] : timm) {
    const std::vector<std::string> parts = split(tensors[0].name, '.');
    if (parts.size() < 3 || parts[0] != "blocks") continue;
    blocks.emplace_back(std::stoll(parts[1]), std::stoll(parts[2]));
  }
  std::sort(blocks.begin(), blocks.end());
  blocks.erase(std::unique(blocks.begin(), blocks.end()), blocks.end());
  if (number < 0 || number >= std::ssize(blocks)) return "";
  const auto& [stage, block] = blocks[static_cast<size_t>(number)];
  return "blocks." + std::to_string(stage) + "." + std::to_string(block) + ".";
}

// lukemelas' names, which count blocks through.
std::string respelled_efficientnet(const std::string& name, const LayoutNames& timm,
                                   const std::vector<std::string>& in_file) {
  std::string changed = name;
  if (replace_start({{"_conv_stem.", "conv_stem."},
                     {"_bn0.", "bn1."},
                     {"_conv_head.", "conv_head."},
                     {"_bn1.", "bn2."},
                     {"_fc.", "classifier."}},
                    &changed)) {
    return changed;
  }
  const std::vector<std::string> parts = split(name, '.');
  long long number = 0;  // NOLINT(runtime/int): type of parse_int()
  if (parts.size() < 4 || parts[0] != "_blocks" || !parse_int(parts[1], &number)) return name;
  const std::string block = timm_block(number, timm), ours = "_blocks." + parts[1] + ".";
  if (block.empty()) return name;
  const std::string expand = ours + "_expand_conv.weight";
  const bool expands = std::find(in_file.begin(), in_file.end(), expand) != in_file.end();
  std::string part = name.substr(ours.size());
  const Starts with = {{"_expand_conv.", "conv_pw."},      {"_bn0.", "bn1."},
                       {"_depthwise_conv.", "conv_dw."},   {"_bn1.", "bn2."},
                       {"_project_conv.", "conv_pwl."},    {"_bn2.", "bn3."},
                       {"_se_reduce.", "se.conv_reduce."}, {"_se_expand.", "se.conv_expand."}};
  const Starts without = {{"_depthwise_conv.", "conv_dw."},   {"_bn1.", "bn1."},
                          {"_project_conv.", "conv_pw."},     {"_bn2.", "bn2."},
                          {"_se_reduce.", "se.conv_reduce."}, {"_se_expand.", "se.conv_expand."}};
  return replace_start(expands ? with : without, &part) ? block + part : name;
}

// Networks that were first trained in TensorFlow pad as it does, and have its epsilon. timm's
// others have PyTorch's, which are not torchvision's.
std::map<std::string, std::string> keys_of_timm(const std::string&,
                                                const std::string& architecture) {
  const bool tensorflow = architecture.starts_with("tf_");
  return {{"batch_norm_epsilon", tensorflow ? "0.001" : "0.00001"},
          {"same_padding", tensorflow ? "true" : "false"}};
}

// timm's names with their counterparts in TensorFlow.
std::vector<std::pair<std::string, std::string>> with_tensorflows(
    std::vector<std::pair<std::string, std::string>> names) {
  const size_t count = names.size();
  for (size_t i = 0; i < count; ++i) {
    names.emplace_back("tf_" + names[i].first, names[i].second);
  }
  return names;
}

}  // namespace

FLEET_WEIGHT_LAYOUT(mobilenet) {
  def.has = [](const std::string& network) {
    return network == "mobilenet_v2" || network.starts_with("mobilenet_v3");
  };
  def.timm_networks = with_tensorflows({{"mobilenetv2_100", "mobilenet_v2"},
                                        {"mobilenetv3_large_100", "mobilenet_v3_large"},
                                        {"mobilenetv3_small_100", "mobilenet_v3_small"}});
  def.timm = inverted_residuals_in_timm;
  def.model_keys = keys_of_timm;
}

FLEET_WEIGHT_LAYOUT(efficientnet) {
  def.has = [](const std::string& network) { return network.starts_with("efficientnet"); };
  def.timm_networks = with_tensorflows({{"efficientnet_b0", "efficientnet_b0"},
                                        {"efficientnet_b1", "efficientnet_b1"},
                                        {"efficientnet_b2", "efficientnet_b2"},
                                        {"efficientnet_b3", "efficientnet_b3"},
                                        {"efficientnet_b4", "efficientnet_b4"},
                                        {"efficientnet_b5", "efficientnet_b5"},
                                        {"efficientnet_b6", "efficientnet_b6"},
                                        {"efficientnet_b7", "efficientnet_b7"},
                                        {"efficientnetv2_s", "efficientnet_v2_s"},
                                        {"efficientnetv2_m", "efficientnet_v2_m"},
                                        {"efficientnetv2_l", "efficientnet_v2_l"},
                                        {"efficientnet_lite0", "efficientnet_lite0"},
                                        {"efficientnet_lite1", "efficientnet_lite1"},
                                        {"efficientnet_lite2", "efficientnet_lite2"},
                                        {"efficientnet_lite3", "efficientnet_lite3"},
                                        {"efficientnet_lite4", "efficientnet_lite4"}});
  def.timm = inverted_residuals_in_timm;
  def.respelled = respelled_efficientnet;
  def.model_keys = keys_of_timm;
}

FLEET_WEIGHT_LAYOUT(mobilenet_v4) {
  def.has = [](const std::string& network) { return network.starts_with("mobilenet_v4"); };
  def.timm_networks = {{"mobilenetv4_conv_small", "mobilenet_v4_conv_small"},
                       {"mobilenetv4_conv_medium", "mobilenet_v4_conv_medium"},
                       {"mobilenetv4_conv_large", "mobilenet_v4_conv_large"}};
}

}  // namespace fleet
