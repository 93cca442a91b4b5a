#include "models/model.h"

#include <algorithm>

namespace fleet {

static bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

bool ModelPorts::gives(const std::vector<std::string>& wanted) const {
  return std::ranges::all_of(wanted, [&](const std::string& name) {
    const auto is_next_to = [&](const std::string& other) {
      const auto extra = extras.find(other);
      return extra != extras.end() && has(extra->second.outputs, name);
    };
    return has(outputs, name) || std::ranges::any_of(wanted, is_next_to);
  });
}

std::vector<std::string> ModelPorts::inputs_for(const std::set<std::string>& wanted) const {
  std::vector<std::string> all = inputs;
  for (const auto& [output, extra] : extras) {
    if (!wanted.contains(output)) continue;
    for (const std::string& name : extra.inputs) {
      if (!has(all, name)) all.push_back(name);
    }
  }
  return all;
}

ModelPorts ports_of(const std::string& model, const Settings& settings) {
  const ModelDef& def = model_registry().get(model);
  return def.ports ? def.ports(settings) : ModelPorts{def.inputs, def.outputs, def.extras};
}

Registry<ModelDef>& model_registry() {
  static Registry<ModelDef> registry("model");
  return registry;
}

bool register_model(const std::string& name, void (*define)(ModelDef&)) {
  return model_registry().define(name, define, {.schema = model_schema()});
}

static void add_common_keys(Schema* schema) {
  schema
      ->boolean("use_cudnn", true,
                "use cuDNN on a GPU; false: use fleetrun's own kernels where they exist")
      .boolean("winograd", true,
               "use Winograd's method for 3 x 3 convolutions on a CPU with AVX2 or AVX-512: about "
               "twice as fast in float32, with larger rounding errors");
}

Schema common_model_schema() {
  Schema schema;
  add_common_keys(&schema);
  return schema;
}

Schema model_schema(int64_t num_classes) {
  Schema schema;
  schema.integer("num_classes", num_classes, 1, 1e7, "number of classes");
  add_common_keys(&schema);
  return schema;
}

Schema batch_norm_model_schema(int64_t num_classes) {
  Schema schema = model_schema(num_classes);
  schema.number(kBatchNormEpsilon, 0, 0, 1,
                "epsilon of every batch norm, which belongs to the weights; 0: the network's own");
  return schema;
}

Schema same_padding_key(Schema schema, bool initial) {
  schema.boolean("same_padding", initial,
                 "pad convolutions as TensorFlow's SAME, which belongs to the weights");
  return schema;
}

std::function<NamedVars(Network&, const NamedVars&, const Settings&)> image_classifier(
    std::function<VarId(Network&, VarId image, const Settings&)> build) {
  return [build = std::move(build)](Network& network, const NamedVars& inputs,
                                    const Settings& settings) -> NamedVars {
    return {{"logits", build(network, inputs.at("image"), settings)}};
  };
}

}  // namespace fleet
