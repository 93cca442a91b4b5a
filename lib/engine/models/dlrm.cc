// dlrm: DLRM (Naumov et al. 2019), with the interaction "dot" of facebookresearch/dlrm: layers over
// the dense features ("bottom"), the dot products of all pairs of their result and the embeddings
// of the slots, and layers over that result and the products ("top").
#include "models/click_layers.h"

namespace fleet {
namespace {

VarId build_dlrm(Network& network, const NamedVars& inputs, const Settings& settings) {
  const VarId dense = inputs.at("dense"), ids = inputs.at("ids");
  const int64_t samples = network.shape(dense)[0], dim = settings.integer("dim");
  VarId bottom = hidden_layers(network, "bottom", dense, settings, "bottom");
  bottom = network.relu(network.linear("bottom_head", bottom, {.features = dim}));
  const VarId rows = network.table("embedding", ids, table_of(settings, dim));
  const VarId features = network.concat({network.reshape(bottom, {samples, 1, dim}), rows});
  const VarId products = network.apply("dot_interaction", {features});
  const VarId x = network.concat({bottom, products});
  return network.linear("head", hidden_layers(network, "top", x, settings, "top"), {.features = 1});
}

}  // namespace

FLEET_MODEL(dlrm) {
  def.help = "DLRM for clicks: dot products of dense features and embeddings between two networks";
  def.schema = table_schema(16)
                   .integers("bottom", {512, 256, 64},
                             "outputs of hidden layers over the dense features; the last layer has "
                             "dim outputs")
                   .integers("top", {512, 256}, "outputs of hidden layers over the products");
  def.inputs = {"dense", "ids"};
  def.build = [](Network& network, const NamedVars& inputs, const Settings& settings) -> NamedVars {
    return {{"logits", build_dlrm(network, inputs, settings)}};
  };
}

}  // namespace fleet
