// vgg11, 13, 16, 19: Simonyan and Zisserman 2014, configurations A, B, D and E, with torchvision's
// names (features.N, classifier.N) and initialisation; _bn has batch norm after each convolution.
#include <algorithm>

#include "models/model.h"

namespace fleet {
namespace {

// torchvision pools the features to 7 x 7 for any image size. This does the same if each output
// covers a whole number of pixels (224 and its multiples); features of smaller or other images go
// into the classifier unchanged, which then has fewer inputs.
VarId pool_features(Network& network, VarId x) {
  const int64_t height = network.shape(x)[2], width = network.shape(x)[3];
  if (height != width || height % 7 != 0 || height == 7) return x;
  return network.pool(x, {.type = "avg", .kernel = height / 7, .stride = height / 7});
}

VarId classify(Network& network, VarId x, const Settings& settings) {
  const double p = settings.number("dropout");
  const int64_t width = settings.integer("classifier_width");
  const auto linear = [&](const char* name, int64_t features) {
    x = network.linear(name, x, {.features = features, .init = WeightInit::kNormal001});
  };
  linear("classifier.0", width);
  x = network.dropout(network.relu(x), p);
  linear("classifier.3", width);
  x = network.dropout(network.relu(x), p);
  linear("classifier.6", settings.integer("num_classes"));
  return x;
}

// convolutions: their number in each of the five stages.
void define_vgg(ModelDef& def, const std::vector<int>& convolutions, bool batch_norm_default) {
  def.help = "VGG, torchvision's names";
  def.schema =
      batch_norm_model_schema()
          .boolean("batch_norm", batch_norm_default,
                   "use batch norm after each convolution, as the _bn models do")
          .number("dropout", 0.5, 0, 0.99, "dropout rate of the classifier's hidden layers")
          .integer("classifier_width", 4096, 1, 65536, "outputs of the classifier's hidden layers");
  def.build =
      image_classifier([convolutions](Network& network, VarId image, const Settings& settings) {
        const bool batch_norm = settings.boolean("batch_norm");
        VarId x = image;
        int number = 0;  // index in torchvision's "features", which also counts ReLU and pooling
        for (size_t stage = 0; stage < convolutions.size(); ++stage) {
          const int64_t channels = std::min<int64_t>(64 << stage, 512);
          for (int i = 0; i < convolutions[stage]; ++i) {
            x = network.conv2d("features." + std::to_string(number++), x,
                               {.channels = channels, .kernel = 3, .padding = 1, .bias = true});
            if (batch_norm) x = network.batch_norm("features." + std::to_string(number++), x);
            x = network.relu(x);
            ++number;
          }
          x = network.block("features." + std::to_string(number++), network.pool(x, {}));
        }
        return classify(network, network.flatten(pool_features(network, x)), settings);
      });
}

}  // namespace

FLEET_MODEL(vgg11) { define_vgg(def, {1, 1, 2, 2, 2}, false); }
FLEET_MODEL(vgg13) { define_vgg(def, {2, 2, 2, 2, 2}, false); }
FLEET_MODEL(vgg16) { define_vgg(def, {2, 2, 3, 3, 3}, false); }
FLEET_MODEL(vgg19) { define_vgg(def, {2, 2, 4, 4, 4}, false); }
FLEET_MODEL(vgg11_bn) { define_vgg(def, {1, 1, 2, 2, 2}, true); }
FLEET_MODEL(vgg13_bn) { define_vgg(def, {2, 2, 2, 2, 2}, true); }
FLEET_MODEL(vgg16_bn) { define_vgg(def, {2, 2, 3, 3, 3}, true); }
FLEET_MODEL(vgg19_bn) { define_vgg(def, {2, 2, 4, 4, 4}, true); }

}  // namespace fleet
