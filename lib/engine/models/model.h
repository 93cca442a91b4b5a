// Models: networks with named inputs and outputs, one per file, registered under the name users
// give.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/config.h"
#include "models/named_vars.h"
#include "models/network.h"

namespace fleet {

// The columns that a model takes, and the outputs of its network.
struct ModelPorts {
  std::vector<std::string> inputs, outputs;
  // By output: the columns that only this output needs, and the outputs that exist only next to it,
  // as the head of masked tokens.
  struct Extra {
    std::vector<std::string> inputs = {}, outputs = {};
  };
  std::map<std::string, Extra> extras = {};

  // Whether a network can have all of these outputs.
  bool gives(const std::vector<std::string>& wanted) const;
  // The inputs of a network with these outputs.
  std::vector<std::string> inputs_for(const std::set<std::string>& wanted) const;
};

struct ModelDef {
  std::string help;  // one line
  Schema schema;     // its keys, below "model." in a job file
  // Its inputs: columns of the data (tensor/column.h). "sample_key" need not be named:
  // every model gets it.
  std::vector<std::string> inputs = {"image"};
  // The outputs that build() can return. A task names those that it needs (models/task.h): only
  // these have to exist, see Network::wants().
  std::vector<std::string> outputs = {"logits"};
  std::map<std::string, ModelPorts::Extra> extras = {};
  // Null, or all of these by the model's settings: those of "hf" depend on its folder.
  std::function<ModelPorts(const Settings&)> ports;
  Shape image = {3, 224, 224};  // default size of the input "image": channels, height, width
  // Builds the network. inputs: those of `inputs`, each [N, ...] as the column has it, and
  // "sample_key", int64 [N], which is kNoVar in an evaluation. Returns the outputs, by name. kUsage
  // if the size of an input does not fit.
  //
  // Usual names. Inputs: "image", float32 [N, C, H, W]; "input_ids", "position_ids" and
  // "document_ids", int64 [N, S]. Outputs: "logits", float32 [N, num_classes]; "hidden" [N, S, H]
  // and "head" [V, H], whose product is the logits of a language model. Encoders of texts also take
  // "token_type_ids" [N, S] and "masked_positions" [N, M], and give "pooled" [N, H],
  // "masked_hidden" [N, M, H] with "head" and "head_bias" [V], "next_sentence_logits" [N, 2],
  // "token_logits" [N, S, num_classes] and "span_logits" [N, S, 2].
  std::function<NamedVars(Network&, const NamedVars& inputs, const Settings&)> build;
};

Registry<ModelDef>& model_registry();
// The ports of a model with these settings. Errors of ModelDef::ports, and kUsage for an unknown
// model.
ModelPorts ports_of(const std::string& model, const Settings& settings);
bool register_model(const std::string& name, void (*define)(ModelDef&));

// A key of networks with batch norm; build_training() applies it.
inline constexpr char kBatchNormEpsilon[] = "batch_norm_epsilon";

// The keys every model has.
Schema common_model_schema();
// These, and num_classes: the keys every classifier of images has.
Schema model_schema(int64_t num_classes = 1000);
// These, and batch_norm_epsilon: for networks with batch norm.
Schema batch_norm_model_schema(int64_t num_classes = 1000);
// With the key same_padding, for networks whose weights also come from TensorFlow: every
// convolution is then padded as Conv2d::same_padding.
Schema same_padding_key(Schema schema, bool initial);

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
