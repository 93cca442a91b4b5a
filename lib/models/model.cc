#include "models/model.h"

namespace fleet {

Registry<ModelDef>& model_registry() {
  static Registry<ModelDef> registry("model");
  return registry;
}

bool register_model(const std::string& name, void (*define)(ModelDef&)) {
  ModelDef def;
  def.schema = model_schema();
  define(def);
  model_registry().add(name, std::move(def));
  return true;
}

Schema model_schema(int64_t num_classes) {
  return Schema()
      .integer("num_classes", num_classes, 1, 1e7, "how many classes there are")
      .boolean("use_cudnn", true,
               "on a GPU; false: kernels of fleetrun's own, where an operation has one")
      .boolean("winograd", true,
               "on a CPU with AVX-512; false: no 3 x 3 convolution is computed by Winograd's "
               "method, which is twice as fast in float32 and rounds more");
}

}  // namespace fleet
