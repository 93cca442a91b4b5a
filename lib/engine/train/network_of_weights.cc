#include "train/network_of_weights.h"

#include <algorithm>

#include "base/error.h"
#include "models/evaluated_network.h"
#include "models/weight_layout.h"
#include "train/image_weights.h"
#include "train/name_prefix.h"

namespace fleet {
namespace {

// The number of tensors that fit; -1 if one does not.
int64_t fitting(const WeightLayout& layout, const Program& program, TensorFile file) {
  fit_image_weights(layout, program, "", {}, &file);
  const TensorShapes ours = tensors_of_network(program);
  std::vector<std::string> names;
  std::set<std::string> known;
  for (const auto& [name, tensor] : file.tensors) names.push_back(name);
  for (const auto& [name, shape] : ours) known.insert(name);
  remove_prefix(likely_prefix(names, known).text, &file.tensors);
  const std::string head = last_layer(program);
  int64_t fits = 0;
  for (const auto& [name, shape] : ours) {
    const auto found = file.tensors.find(name);
    if (name.starts_with(head + ".")) continue;
    if (found == file.tensors.end()) return -1;
    const Shape& theirs = found->second.shape;
    const bool positions = name.find("pos_embed") != std::string::npos;
    if (theirs != shape && !positions) return -1;
    ++fits;
  }
  return fits;
}

}  // namespace

Program network_program(const std::string& model, const Settings* settings, const Shape& image) {
  const ModelDef& def = model_registry().get(model);
  const Shape& size = image.rank() == 3 ? image : def.image;
  const Settings defaults = ConfigTree().validate(def.schema);
  return evaluated_network(model, settings ? *settings : defaults, {1, size[0], size[1], size[2]},
                           {"logits"})
      .program;
}

std::string network_of_weights(const TensorFile& file) {
  TensorFile plain = file;
  std::erase_if(plain.tensors,
                [](const auto& entry) { return entry.first.ends_with(".num_batches_tracked"); });
  int64_t most = 0;
  std::string best;
  for (const std::string& model : model_registry().names()) {
    const WeightLayout* layout = find_weight_layout(model);
    if (!layout) continue;
    const int64_t fits = fitting(*layout, network_program(model), plain);
    if (fits <= most) continue;
    most = fits;
    best = model;
  }
  return best;
}

}  // namespace fleet
