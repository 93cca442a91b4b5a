// mlp: fully connected layers fc1, fc2, ... with ReLU between them.
#include "models/model.h"

namespace fleet {

FLEET_MODEL(mlp) {
  def.help = "fully connected layers with ReLU between them";
  def.image = {1, 28, 28};
  def.schema = model_schema(10)
                   .integers("hidden", {256, 128}, "outputs of each hidden layer")
                   .number("dropout", 0, 0, 0.99, "dropout rate of each hidden layer's outputs");
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    VarId x = network.flatten(image);
    int number = 1;
    for (int64_t features : settings.integers("hidden")) {
      if (features < 1) {
        throw Error(ErrorCode::kUsage, "a hidden layer of " + std::to_string(features) + " outputs",
                    "model.hidden", "give numbers of 1 or more");
      }
      const std::string name = "fc" + std::to_string(number++);
      x = network.relu(network.linear(name, x, {.features = features}));
      x = network.block(name, network.dropout(x, settings.number("dropout")));
    }
    return network.linear("fc" + std::to_string(number), x,
                          {.features = settings.integer("num_classes")});
  });
}

}  // namespace fleet
