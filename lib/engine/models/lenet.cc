// lenet: LeNet-5 (LeCun et al. 1998) in its common modern form: ReLU and max pooling.
#include "models/model.h"

namespace fleet {

FLEET_MODEL(lenet) {
  def.help = "LeNet-5 with ReLU and max pooling, for 28 x 28 images";
  def.image = {1, 28, 28};
  def.schema = model_schema(10).number("dropout", 0, 0, 0.99,
                                       "dropout rate of the fully connected layers' outputs");
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    const auto conv = [&](const char* name, VarId x, int64_t channels, int64_t padding) {
      x = network.conv2d(name, x,
                         {.channels = channels,
                          .kernel = 5,
                          .padding = padding,
                          .bias = true,
                          .init = WeightInit::kTorchDefault});
      return network.block(name, network.pool(network.relu(x), {}));
    };
    const double dropout = settings.number("dropout");
    VarId x = conv("conv1", image, 6, 2);
    x = network.flatten(conv("conv2", x, 16, 0));
    const auto linear = [&](const char* name, int64_t features) {
      x = network.relu(network.linear(name, x, {.features = features}));
      x = network.block(name, network.dropout(x, dropout));
    };
    linear("fc1", 120);
    linear("fc2", 84);
    return network.linear("fc3", x, {.features = settings.integer("num_classes")});
  });
}

}  // namespace fleet
