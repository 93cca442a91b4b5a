// deepfm: DeepFM (Guo et al. 2017), in PaddleRec's form. Each slot and each dense feature is a
// field with an embedding; the embedding of a dense feature is scaled by its value. The logit is
// the sum of a linear part, the interactions of all pairs of fields, fully connected layers over
// all fields, and a bias.
#include "models/click_layers.h"

namespace fleet {
namespace {

class DeepFm {
 public:
  DeepFm(Network& network, const NamedVars& inputs, const Settings& settings)
      : network_(network),
        settings_(settings),
        ids_(inputs.at("ids")),
        dense_(settings.boolean("dense") ? inputs.at("dense") : kNoVar),
        samples_(network.shape(ids_)[0]) {}

  VarId logits() {
    const VarId fields = embeddings();
    const VarId pairs = network_.apply("fm_interaction", {fields});
    const VarId x = hidden_layers(network_, "fc", network_.flatten(fields), settings_, "hidden");
    VarId logits = network_.linear("head", x, {.features = 1});
    logits = network_.add(network_.add(logits, pairs), first_order());
    return network_.add(logits, network_.parameter("bias", {1}, init::constant(0)));
  }

 private:
  bool has_dense() const { return dense_ != kNoVar; }

  // All slots are one list of ids.
  VarId first_order() {
    const VarId ids = network_.reshape(ids_, {samples_, 1, -1});
    const VarId sums = network_.table("first_order", ids, table_of(settings_, 1));
    const VarId of_ids = network_.reshape(sums, {samples_, 1});
    if (!has_dense()) return of_ids;
    return network_.add(
        of_ids, network_.linear("dense_first_order", dense_, {.features = 1, .bias = false}));
  }

  // [N, fields, dim]
  VarId embeddings() {
    const int64_t dim = settings_.integer("dim");
    const VarId of_ids = network_.table("embedding", ids_, table_of(settings_, dim));
    if (!has_dense()) return of_ids;
    const int64_t features = network_.shape(dense_)[1];
    const VarId weight = network_.parameter("dense_embedding.weight", {features, dim},
                                            init::uniform(settings_.number("embedding_init")));
    const VarId ones = network_.apply(
        "fill", {}, {{"shape", std::vector<int64_t>{samples_, features, dim}}, {"value", 1.0}});
    const VarId rows = network_.apply("elementwise_mul", {ones, weight});
    const VarId of_dense =
        network_.apply("elementwise_mul", {rows, dense_}, {{"axis", int64_t{0}}});
    return network_.concat({of_ids, of_dense});
  }

  Network& network_;
  const Settings& settings_;
  VarId ids_, dense_;
  int64_t samples_;
};

}  // namespace

FLEET_MODEL(deepfm) {
  def.help = "DeepFM for clicks: a factorization machine and a deep part over the same embeddings";
  def.schema = table_schema(9).integers("hidden", {400, 400, 400}, "outputs of hidden layers");
  dense_key(def.schema);
  def.ports = click_ports;
  def.inputs = {"ids", "dense"};
  def.build = [](Network& network, const NamedVars& inputs, const Settings& settings) -> NamedVars {
    return {{"logits", DeepFm(network, inputs, settings).logits()}};
  };
}

}  // namespace fleet
