#include "train/backbone_weights.h"

#include <map>
#include <utility>

#include "base/text.h"

namespace fleet {
namespace {

constexpr const char* kBackbone = "backbone.";

// The name in the network of a classifier's tensor.
std::string name_in_backbone(std::string name) {
  for (const char* start : {"module.", "features."}) {
    if (name.starts_with(start)) name.erase(0, std::string(start).size());
  }
  return kBackbone + name;
}

}  // namespace

BackboneFit fit_backbone(const std::vector<const Var*>& vars, TensorFile* file) {
  std::map<std::string, Shape> backbone;
  for (const Var* var : vars) {
    if (var->name.starts_with(kBackbone)) backbone.emplace(var->name, var->shape);
  }
  std::map<std::string, std::string> renamed;  // by the file's names
  std::vector<std::string> unused;
  for (const auto& [name, tensor] : file->tensors) {
    if (name.find(kBackbone) != std::string::npos) return {};  // of such a network itself
    const auto own = backbone.find(name_in_backbone(name));
    if (own == backbone.end() || own->second != tensor.shape) {
      unused.push_back(name);
    } else {
      renamed.emplace(name, own->first);
    }
  }
  if (backbone.empty() || renamed.size() < backbone.size()) return {};
  std::map<std::string, HostTensor> tensors;
  for (const auto& [name, own] : renamed) {
    tensors.emplace(own, std::move(file->tensors.at(name)));
  }
  file->tensors = std::move(tensors);
  BackboneFit fit;
  for (const Var* var : vars) {
    if (!var->name.starts_with(kBackbone)) fit.skipped.insert(var->name);
  }
  fit.lines.push_back("read as the backbone" +
                      (unused.empty() ? "" : "; not used: " + join(unused, ", ")));
  return fit;
}

}  // namespace fleet
