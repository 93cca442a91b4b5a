// Models: networks with named inputs and outputs, one per file, registered under the name users
// give.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/config.h"
#include "models/named_vars.h"
#include "models/network.h"

namespace fleet {

struct ModelDef {
  std::string help;  // one line
  Schema schema;     // its keys, below "model." in a job file
  // Its inputs: columns of the data (tensor/column.h). "sample_key" need not be named:
  // every model gets it.
  std::vector<std::string> inputs = {"image"};
  // The outputs of build(). A task names those that it needs (models/task.h).
  std::vector<std::string> outputs = {"logits"};
  Shape image = {3, 224, 224};  // default size of the input "image": channels, height, width
  // Builds the network. inputs: those of `inputs`, each [N, ...] as the column has it, and
  // "sample_key", int64 [N], which is kNoVar in an evaluation. Returns the outputs, by name. kUsage
  // if the size of an input does not fit.
  //
  // Usual names. Inputs: "image", float32 [N, C, H, W]; "input_ids", "position_ids" and
  // "document_ids", int64 [N, S]. Outputs: "logits", float32 [N, num_classes]; "hidden" [N, S, H]
  // and "head" [V, H], whose product is the logits of a language model.
  std::function<NamedVars(Network&, const NamedVars& inputs, const Settings&)> build;
};

Registry<ModelDef>& model_registry();
bool register_model(const std::string& name, void (*define)(ModelDef&));

// The keys every model has.
Schema common_model_schema();
// These, and num_classes: the keys every classifier of images has.
Schema model_schema(int64_t num_classes = 1000);

// The build() of a network with the input "image" and the output "logits".
//   def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
//     ...
//     return network.linear("fc", x, {.features = settings.integer("num_classes")});
//   });
std::function<NamedVars(Network&, const NamedVars&, const Settings&)> image_classifier(
    std::function<VarId(Network&, VarId image, const Settings&)> build);

// FLEET_MODEL(lenet) { def.schema = ...; def.build = ...; } in lib/engine/models/lenet.cc.
#define FLEET_MODEL(name) \
  FLEET_REGISTER(model_##name, ::fleet::ModelDef& def, ::fleet::register_model, #name)

}  // namespace fleet
