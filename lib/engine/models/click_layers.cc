#include "models/click_layers.h"

#include "base/error.h"

namespace fleet {

Schema table_schema(int64_t dim) {
  return common_model_schema()
      .integer("ids", 1000001, 1, (1LL << 31) - 2,
               "rows of each table: ids are 0 to ids - 1 (data.ids)")
      .integer("dim", dim, 1, 1 << 16, "numbers of a row of the table of embeddings")
      .number("embedding_init", 0.01, 0, 1e6,
              "initial values of tables are uniform from -embedding_init to embedding_init")
      .boolean("sparse_embedding", true,
               "exchange and update only the rows of tables that a step reads; for the optimizers "
               "sgd and adagrad");
}

Table table_of(const Settings& settings, int64_t dim) {
  return {.rows = settings.integer("ids"),
          .dim = dim,
          .bound = settings.number("embedding_init"),
          .sparse = settings.boolean("sparse_embedding")};
}

Schema& dense_key(Schema& schema) {
  return schema.boolean("dense", true, "the data have dense features, the column \"dense\"");
}

ModelPorts click_ports(const Settings& settings) {
  ModelPorts ports{.inputs = {"ids"}, .outputs = {"logits"}};
  if (settings.boolean("dense")) ports.inputs.emplace_back("dense");
  return ports;
}

VarId hidden_layers(Network& network, const std::string& prefix, VarId x, const Settings& settings,
                    const std::string& key) {
  int number = 1;
  for (const int64_t features : settings.integers(key)) {
    if (features < 1) {
      throw Error(ErrorCode::kUsage, "a hidden layer of " + std::to_string(features) + " outputs",
                  "model." + key, "give numbers of 1 or more");
    }
    const std::string name = prefix + std::to_string(number++);
    x = network.block(name, network.relu(network.linear(name, x, {.features = features})));
  }
  return x;
}

}  // namespace fleet
