// Names that timm and others give to the tensors of image networks. Ours are torchvision's where it
// has the network. One file of lib/engine/models/layouts describes a family of networks.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/registry.h"
#include "tensor/shape.h"

namespace fleet {

// The parameters and running statistics of a network, by name.
using TensorShapes = std::map<std::string, Shape>;

// A tensor of a file. A parameter here may be several of them, joined along their first axis.
struct LayoutTensor {
  std::string name;  // "": zeros, which the file does not have
  Shape shape;
};
using LayoutNames = std::map<std::string, std::vector<LayoutTensor>>;  // by our names

struct WeightLayout {
  // Whether it describes this network, by our name.
  std::function<bool(const std::string& network)> has;
  // timm's names of networks, without tags, and ours: {"vit_base_patch16_224", "vit_b_16"}. If
  // several have one name here, exports use the first. A network with one name needs no line.
  std::vector<std::pair<std::string, std::string>> timm_networks = {};
  // timm's tensors. Null: they are ours.
  std::function<LayoutNames(const TensorShapes& ours)> timm = nullptr;
  // timm's name for a tensor of a third program, such as the authors' own. `timm` has the names
  // that the network has, `in_file` all of the file. The name itself if it is not known.
  std::function<std::string(const std::string& name, const LayoutNames& timm,
                            const std::vector<std::string>& in_file)>
      respelled = nullptr;
  bool in_timm = true;  // timm has these networks
  bool adamw = false;   // fine-tuned with AdamW instead of momentum
  // Keys below "model." and their values for weights of this architecture of timm, such as another
  // epsilon. Null: none.
  std::function<std::map<std::string, std::string>(const std::string& network,
                                                   const std::string& architecture)>
      model_keys = nullptr;
  // Keys and values that follow from the names and shapes in a file, such as another patch. Null:
  // none.
  std::function<std::map<std::string, std::string>(const std::string& network,
                                                   const TensorShapes& file)>
      keys_of_file = nullptr;
  // Starts of the names of tensors that a network here does not have.
  std::vector<std::string> unused = {};
  // Endings of tensors that other programs save and a network computes.
  std::vector<std::string> buffers = {};
};

// FLEET_WEIGHT_LAYOUT(vit) { def.has = ...; } in lib/engine/models/layouts/vit.cc.
Registry<WeightLayout>& weight_layouts();
#define FLEET_WEIGHT_LAYOUT(name)                                  \
  FLEET_REGISTER(weight_layout_##name, ::fleet::WeightLayout& def, \
                 ::fleet::weight_layouts().define, #name)

// Null if no family has this network.
const WeightLayout* find_weight_layout(const std::string& network);

// Our name for a network of timm ("resnet50.a1_in1k"), of torchvision, or our own; "" if there is
// no model of this kind.
std::string network_named(const std::string& architecture);
// timm's name for our network, without a tag; "" if timm does not have it.
std::string timm_network(const std::string& network);
// The names that are nearest to one that network_named() does not know: "did you mean ...?", or "".
std::string nearest_networks(const std::string& architecture);

// timm's tensors of a network; those without a rule are as they are here.
LayoutNames timm_tensors(const WeightLayout& layout, const TensorShapes& ours);
// A rule that renames one tensor at a time: for WeightLayout::timm.
std::function<LayoutNames(const TensorShapes&)> renamed_to_timm(
    std::function<LayoutTensor(const std::string& name, const Shape& shape)> rule);
// Replaces a name's start by that of the first pair that fits it; false if none does.
bool replace_start(const std::vector<std::pair<std::string, std::string>>& starts,
                   std::string* name);
// Like replace_start(), for a part anywhere in the name.
bool replace_part(const std::vector<std::pair<std::string, std::string>>& parts, std::string* name);
// The number behind a part of a name: 32 behind "_patch" of "vit_small_patch32_224"; 0: none.
int64_t number_behind(const std::string& part, const std::string& name);

}  // namespace fleet
