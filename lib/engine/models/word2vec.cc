// word2vec: the skip-gram model with negative sampling (Mikolov et al. 2013, "Distributed
// Representations of Words and Phrases"). Inputs: "center", int64 [N, 1], a word, and "context",
// int64 [N, 1 + n], a word next to it and n words drawn at random. Output: "logits", [N, 1 + n],
// the dot products of the word's row of one table and the others' rows of another.
#include "models/click_layers.h"

namespace fleet {
namespace {

NamedVars build_word2vec(Network& network, const NamedVars& inputs, const Settings& settings) {
  const int64_t samples = network.shape(inputs.at("center"))[0];
  const int64_t words = network.shape(inputs.at("context"))[1];
  const int64_t dim = settings.integer("dim");
  // As in the paper's program: one table starts small, the other at 0.
  Table table{.rows = settings.integer("ids"),
              .dim = dim,
              .bound = 0.5 / static_cast<double>(dim),
              .sparse = settings.boolean("sparse_embedding")};
  const VarId center =
      network.table("embedding", network.reshape(inputs.at("center"), {samples, 1, 1}), table);
  table.bound = 0;
  const VarId context =
      network.table("context", network.reshape(inputs.at("context"), {samples, words, 1}), table);
  const VarId products = network.apply("matmul", {context, center}, {{"transpose_y", true}});
  return {{"logits", network.reshape(products, {samples, words})}};
}

}  // namespace

FLEET_MODEL(word2vec) {
  def.help = "embeddings of words: skip-gram with negative sampling";
  def.schema =
      common_model_schema()
          .integer("ids", 354051, 1, (1LL << 31) - 2, "words: ids are 0 to ids - 1")
          .integer("dim", 300, 1, 1 << 16, "numbers of a word's embedding")
          .boolean("sparse_embedding", true,
                   "exchange and update only the rows of tables that a step reads; for the "
                   "optimizers sgd and adagrad");
  def.inputs = {"center", "context"};
  def.build = build_word2vec;
}

}  // namespace fleet
