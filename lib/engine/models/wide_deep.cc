// wide_deep: Wide & Deep (Cheng et al. 2016), in PaddleRec's form: a linear layer over the dense
// features, and fully connected layers over them and the embeddings of all slots, added up.
#include "models/click_layers.h"

namespace fleet {

FLEET_MODEL(wide_deep) {
  def.help = "Wide & Deep for clicks: a linear and a deep part, added up";
  def.schema = table_schema(9).integers("hidden", {512, 256, 128, 32}, "outputs of hidden layers");
  dense_key(def.schema);
  def.ports = click_ports;
  def.inputs = {"ids", "dense"};
  def.build = [](Network& network, const NamedVars& inputs, const Settings& settings) -> NamedVars {
    const bool has_dense = settings.boolean("dense");
    VarId x = network.flatten(
        network.table("embedding", inputs.at("ids"), table_of(settings, settings.integer("dim"))));
    if (has_dense) x = network.concat({x, inputs.at("dense")});
    x = hidden_layers(network, "fc", x, settings, "hidden");
    VarId logits = network.linear("head", x, {.features = 1});
    if (has_dense) {
      logits = network.add(logits, network.linear("wide", inputs.at("dense"), {.features = 1}));
    }
    return {{"logits", logits}};
  };
}

}  // namespace fleet
