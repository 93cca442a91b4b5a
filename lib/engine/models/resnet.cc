// resnet18/34/50/101: He et al. 2015, version 1.5 (a bottleneck's stride is in its 3x3
// convolution), with torchvision's names and initialisation.
#include "models/model.h"

namespace fleet {
namespace {

struct Depth {
  bool bottleneck;
  std::vector<int> blocks;  // in the four stages
};

class ResnetBuilder {
 public:
  ResnetBuilder(Network& network, const Settings& settings, const Depth& depth)
      : net_(network),
        depth_(depth),
        last_scale_(settings.boolean("zero_init_residual") ? 0 : 1),
        width_(settings.integer("width")),
        classes_(settings.integer("num_classes")) {}

  VarId build(VarId image) {
    VarId x = conv_bn(image, "conv1", "bn1", width_, 7, 2);
    x = net_.block("stem", net_.pool(net_.relu(x), {.kernel = 3, .stride = 2, .padding = 1}));
    for (size_t stage = 0; stage < depth_.blocks.size(); ++stage) {
      for (int i = 0; i < depth_.blocks[stage]; ++i) {
        const std::string name = "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
        x = block(x, name + ".", width_ << stage, stage > 0 && i == 0 ? 2 : 1);
        net_.block(name, x);
      }
    }
    return net_.linear("fc", net_.flatten(net_.global_pool(x)), {.features = classes_});
  }

 private:
  VarId conv_bn(VarId x, const std::string& conv, const std::string& bn, int64_t channels,
                int64_t kernel, int64_t stride, double scale = 1) {
    x = net_.conv2d(
        conv, x, {.channels = channels, .kernel = kernel, .stride = stride, .padding = kernel / 2});
    return net_.batch_norm(bn, x, {.scale = scale});
  }

  VarId block(VarId x, const std::string& name, int64_t width, int64_t stride) {
    const int64_t outputs = depth_.bottleneck ? 4 * width : width;
    VarId y;
    if (depth_.bottleneck) {
      y = net_.relu(conv_bn(x, name + "conv1", name + "bn1", width, 1, 1));
      y = net_.relu(conv_bn(y, name + "conv2", name + "bn2", width, 3, stride));
      y = conv_bn(y, name + "conv3", name + "bn3", outputs, 1, 1, last_scale_);
    } else {
      y = net_.relu(conv_bn(x, name + "conv1", name + "bn1", width, 3, stride));
      y = conv_bn(y, name + "conv2", name + "bn2", outputs, 3, 1, last_scale_);
    }
    if (stride != 1 || net_.shape(x)[1] != outputs) {
      x = conv_bn(x, name + "downsample.0", name + "downsample.1", outputs, 1, stride);
    }
    return net_.relu(net_.add(y, x));
  }

  Network& net_;
  const Depth& depth_;
  double last_scale_;
  int64_t width_, classes_;
};

void define_resnet(ModelDef& def, const Depth& depth) {
  def.help = "residual network, v1.5, torchvision's names";
  def.schema = model_schema()
                   .boolean("zero_init_residual", false,
                            "initialise the scale of each block's last batch norm with zero")
                   .integer("width", 64, 1, 4096, "channels of the first stage");
  def.build = image_classifier([depth](Network& network, VarId image, const Settings& settings) {
    return ResnetBuilder(network, settings, depth).build(image);
  });
}

}  // namespace

FLEET_MODEL(resnet18) { define_resnet(def, {false, {2, 2, 2, 2}}); }
FLEET_MODEL(resnet34) { define_resnet(def, {false, {3, 4, 6, 3}}); }
FLEET_MODEL(resnet50) { define_resnet(def, {true, {3, 4, 6, 3}}); }
FLEET_MODEL(resnet101) { define_resnet(def, {true, {3, 4, 23, 3}}); }

}  // namespace fleet
