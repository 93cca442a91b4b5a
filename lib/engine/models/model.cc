#include "models/model.h"

namespace fleet {

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
               "use Winograd's method for 3 x 3 convolutions on a CPU with AVX-512: about twice as "
               "fast in float32, with larger rounding errors");
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

std::function<NamedVars(Network&, const NamedVars&, const Settings&)> image_classifier(
    std::function<VarId(Network&, VarId image, const Settings&)> build) {
  return [build = std::move(build)](Network& network, const NamedVars& inputs,
                                    const Settings& settings) -> NamedVars {
    return {{"logits", build(network, inputs.at("image"), settings)}};
  };
}

}  // namespace fleet
