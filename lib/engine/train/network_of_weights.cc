#include "train/network_of_weights.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "models/evaluated_network.h"
#include "models/weight_layout.h"
#include "train/image_weights.h"
#include "train/name_prefix.h"

namespace fleet {
namespace {

// The number of tensors that fit; -1 if one does not.
int64_t fitting(const WeightLayout& layout, const Program& program, TensorFile file) {
  fit_image_weights(layout, program, "", {.resizes = false}, &file);
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
    const bool positions = name.find("pos_embed") != std::string::npos ||
                           name.ends_with(".relative_position_bias_table");
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

// The network with the keys that the file tells, such as another patch.
static Program program_by_file(const std::string& model,
                               const std::map<std::string, std::string>& keys) {
  const ModelDef& def = model_registry().get(model);
  ConfigTree tree;
  for (const auto& [key, value] : keys) tree.set(key, value, "the file");
  const Settings settings = tree.validate(def.schema);
  Shape image = def.image;
  if (settings.has("patch")) {
    const int64_t patch = settings.integer("patch");
    for (int axis = 1; axis < 3; ++axis)
      image[axis] = std::max<int64_t>(image[axis] / patch, 1) * patch;
  }
  return network_program(model, &settings, image);
}

std::string network_of_weights(const TensorFile& file) {
  TensorFile plain = file;
  std::erase_if(plain.tensors,
                [](const auto& entry) { return entry.first.ends_with(".num_batches_tracked"); });
  TensorShapes shapes;
  for (const auto& [name, tensor] : plain.tensors) shapes[name] = tensor.shape;
  int64_t most = 0;
  std::string best;
  std::optional<Error> refused;  // the keys of the file
  // A network that fits with its usual keys comes first: vit_b_32, not vit_b_16 of other patches.
  for (const bool usual : {true, false}) {
    for (const std::string& model : model_registry().names()) {
      const WeightLayout* layout = find_weight_layout(model);
      if (!layout || (!usual && !layout->keys_of_file)) continue;
      std::map<std::string, std::string> keys;
      if (!usual) keys = layout->keys_of_file(model, shapes);
      try {
        const int64_t fits = fitting(*layout, program_by_file(model, keys), plain);
        if (fits <= most) continue;
        most = fits;
        best = model;
      } catch (const Error& error) {
        if (usual || error.code() != ErrorCode::kUsage) throw;
        refused = error;
      }
    }
    if (!best.empty()) break;
  }
  if (best.empty() && refused) {
    throw Error(ErrorCode::kUsage, "no network has its patches or windows: " + refused->failure(),
                {}, refused->next());
  }
  return best;
}

}  // namespace fleet
