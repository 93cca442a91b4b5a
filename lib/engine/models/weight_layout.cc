#include "models/weight_layout.h"

#include <algorithm>

#include "base/text.h"
#include "models/model.h"

namespace fleet {

Registry<WeightLayout>& weight_layouts() {
  static Registry<WeightLayout> registry("layout of weights");
  return registry;
}

const WeightLayout* find_weight_layout(const std::string& network) {
  for (const std::string& name : weight_layouts().names()) {
    const WeightLayout& layout = weight_layouts().get(name);
    if (layout.has && layout.has(network)) return &layout;
  }
  return nullptr;
}

static bool classifies_images(const std::string& model) {
  const ModelDef* def = model_registry().find(model);
  return def && def->inputs == std::vector<std::string>{"image"};
}

std::string network_named(const std::string& architecture) {
  const std::string plain = architecture.substr(0, architecture.find('.'));
  if (classifies_images(plain)) return plain;
  for (const std::string& name : weight_layouts().names()) {
    for (const auto& [timm, ours] : weight_layouts().get(name).timm_networks) {
      if (timm == plain && classifies_images(ours)) return ours;
    }
  }
  return "";
}

std::string timm_network(const std::string& network) {
  const WeightLayout* layout = find_weight_layout(network);
  if (!layout || !layout->in_timm) return "";
  for (const auto& [timm, ours] : layout->timm_networks) {
    if (ours == network) return timm;
  }
  return network;
}

std::string nearest_networks(const std::string& architecture) {
  const std::string plain = architecture.substr(0, architecture.find('.'));
  std::vector<std::string> known;
  for (const std::string& model : model_registry().names()) {
    if (classifies_images(model)) known.push_back(model);
  }
  for (const std::string& name : weight_layouts().names()) {
    for (const auto& [timm, ours] : weight_layouts().get(name).timm_networks) {
      if (classifies_images(ours)) known.push_back(timm);
    }
  }
  // Names of one family begin alike, whatever their sizes.
  const std::string family = plain.substr(0, plain.find_first_of("_0123456789"));
  std::vector<std::string> alike;
  for (const std::string& name : known) {
    if (name.starts_with(family)) alike.push_back(name);
  }
  constexpr size_t kShown = 6;
  if (!alike.empty()) return "the nearest known networks: " + join_first(alike, kShown);
  return suggestion(plain, known);
}

LayoutNames timm_tensors(const WeightLayout& layout, const TensorShapes& ours) {
  LayoutNames names;
  if (layout.timm) names = layout.timm(ours);
  for (const auto& [name, shape] : ours)
    names.try_emplace(name, std::vector{LayoutTensor{name, shape}});
  return names;
}

std::function<LayoutNames(const TensorShapes&)> renamed_to_timm(
    std::function<LayoutTensor(const std::string&, const Shape&)> rule) {
  return [rule = std::move(rule)](const TensorShapes& ours) {
    LayoutNames names;
    for (const auto& [name, shape] : ours) names[name] = {rule(name, shape)};
    return names;
  };
}

bool replace_start(const std::vector<std::pair<std::string, std::string>>& starts,
                   std::string* name) {
  for (const auto& [from, to] : starts) {
    if (!name->starts_with(from)) continue;
    name->replace(0, from.size(), to);
    return true;
  }
  return false;
}

bool replace_part(const std::vector<std::pair<std::string, std::string>>& parts,
                  std::string* name) {
  for (const auto& [from, to] : parts) {
    const size_t at = name->find(from);
    if (at == std::string::npos) continue;
    name->replace(at, from.size(), to);
    return true;
  }
  return false;
}

int64_t number_behind(const std::string& part, const std::string& name) {
  constexpr size_t kMostDigits = 6;
  const size_t at = name.find(part);
  if (at == std::string::npos) return 0;
  const size_t first = at + part.size();
  size_t end = first;
  while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
  return end == first || end - first > kMostDigits ? 0
                                                   : std::stoll(name.substr(first, end - first));
}

}  // namespace fleet
