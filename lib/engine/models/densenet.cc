// densenet121, 161, 169, 201: Huang et al. 2016, DenseNet-BC: each layer reads the outputs of all
// earlier layers in its block; torchvision's names and initialisation.
#include "models/model.h"

namespace fleet {
namespace {

struct DensenetDepth {
  int64_t growth, first;    // channels: per layer, of the stem
  std::vector<int> layers;  // in each block
};

class DensenetBuilder {
 public:
  DensenetBuilder(Network& network, int64_t growth, double drop_rate)
      : net_(network), growth_(growth), drop_rate_(drop_rate) {}

  VarId stem(VarId image, int64_t channels) {
    VarId x = conv(image, "features.conv0", channels, 7, 2);
    x = norm_relu(x, "features.norm0");
    return net_.block("features.pool0", net_.pool(x, {.kernel = 3, .stride = 2, .padding = 1}));
  }

  VarId dense_block(VarId x, const std::string& name, int layers) {
    std::vector<VarId> features = {x};
    for (int i = 1; i <= layers; ++i) {
      const std::string layer = name + ".denselayer" + std::to_string(i) + ".";
      VarId y = features.size() == 1 ? x : net_.concat(features);
      y = conv(norm_relu(y, layer + "norm1"), layer + "conv1", 4 * growth_, 1);
      y = conv(norm_relu(y, layer + "norm2"), layer + "conv2", growth_, 3);
      features.push_back(net_.dropout(y, drop_rate_));
    }
    return net_.block(name, net_.concat(features));
  }

  VarId transition(VarId x, const std::string& name) {
    x = norm_relu(x, name + ".norm");
    x = conv(x, name + ".conv", net_.shape(x)[1] / 2, 1);
    return net_.block(name, net_.pool(x, {.type = "avg", .kernel = 2, .stride = 2}));
  }

  VarId norm_relu(VarId x, const std::string& name) { return net_.relu(net_.batch_norm(name, x)); }

 private:
  VarId conv(VarId x, const std::string& name, int64_t channels, int64_t kernel,
             int64_t stride = 1) {
    return net_.conv2d(name, x,
                       {.channels = channels,
                        .kernel = kernel,
                        .stride = stride,
                        .padding = kernel / 2,
                        .init = WeightInit::kKaimingNormalFanIn});
  }

  Network& net_;
  const int64_t growth_;
  const double drop_rate_;
};

void define_densenet(ModelDef& def, const DensenetDepth& depth) {
  def.help = "DenseNet, torchvision's names";
  def.schema = batch_norm_model_schema().number("drop_rate", 0, 0, 0.99,
                                                "dropout rate of each layer's outputs");
  def.build = image_classifier([depth](Network& network, VarId image, const Settings& settings) {
    DensenetBuilder builder(network, depth.growth, settings.number("drop_rate"));
    VarId x = builder.stem(image, depth.first);
    for (size_t i = 0; i < depth.layers.size(); ++i) {
      const std::string number = std::to_string(i + 1);
      x = builder.dense_block(x, "features.denseblock" + number, depth.layers[i]);
      if (i + 1 < depth.layers.size()) x = builder.transition(x, "features.transition" + number);
    }
    x = network.flatten(network.global_pool(builder.norm_relu(x, "features.norm5")));
    return network.linear(
        "classifier", x,
        {.features = settings.integer("num_classes"), .init = WeightInit::kTorchDefaultNoBias});
  });
}

}  // namespace

FLEET_MODEL(densenet121) { define_densenet(def, {32, 64, {6, 12, 24, 16}}); }
FLEET_MODEL(densenet161) { define_densenet(def, {48, 96, {6, 12, 36, 24}}); }
FLEET_MODEL(densenet169) { define_densenet(def, {32, 64, {6, 12, 32, 32}}); }
FLEET_MODEL(densenet201) { define_densenet(def, {32, 64, {6, 12, 48, 32}}); }

}  // namespace fleet
