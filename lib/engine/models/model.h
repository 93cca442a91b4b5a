// Models: networks that classify images, one per file, registered under the name users give.
#pragma once

#include <functional>
#include <string>

#include "base/config.h"
#include "models/network.h"

namespace fleet {

struct ModelDef {
  std::string help;             // one line
  Schema schema;                // its keys, below "model." in a job file
  Shape image = {3, 224, 224};  // channels, height, width by default
  // Builds the network: image is float32 [N, C, H, W]; returns logits, float32 [N, num_classes].
  // kUsage if the image's size does not fit.
  std::function<VarId(Network&, VarId image, const Settings&)> build;
};

Registry<ModelDef>& model_registry();
bool register_model(const std::string& name, void (*define)(ModelDef&));

// The keys every model has.
Schema model_schema(int64_t num_classes = 1000);

// FLEET_MODEL(lenet) { def.schema = ...; def.build = ...; } in lib/engine/models/lenet.cc.
#define FLEET_MODEL(name) \
  FLEET_REGISTER(model_##name, ::fleet::ModelDef& def, ::fleet::register_model, #name)

}  // namespace fleet
