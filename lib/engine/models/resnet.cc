// resnet18/34/50/101/152: He et al. 2015, version 1.5 (a bottleneck's stride is in its 3x3
// convolution), with torchvision's names and initialisation.
#include "models/resnet.h"

namespace fleet {
namespace {

class ResnetBuilder {
 public:
  ResnetBuilder(Network& network, const ResnetForm& form, const std::string& prefix, int64_t width,
                double last_scale)
      : net_(network), form_(form), prefix_(prefix), last_scale_(last_scale), width_(width) {}

  std::vector<VarId> stages(VarId image) {
    VarId x = form_.deep ? deep_stem(image)
                         : conv_bn(image, prefix_ + "conv1", prefix_ + "bn1", width_, 7, 2);
    x = net_.block(prefix_ + "stem",
                   net_.pool(net_.relu(x), {.kernel = 3, .stride = 2, .padding = 1}));
    std::vector<VarId> outputs;
    for (size_t stage = 0; stage < form_.blocks.size(); ++stage) {
      // The first block of a dilated stage still has the dilation of the stage before.
      const int64_t stride = stage > 0 && !(form_.dilated && stage >= 2) ? 2 : 1;
      const int64_t last_dilation = dilation_;
      if (form_.dilated && stage >= 2) dilation_ *= 2;
      for (int i = 0; i < form_.blocks[stage]; ++i) {
        const std::string name =
            prefix_ + "layer" + std::to_string(stage + 1) + "." + std::to_string(i);
        x = block(x, name + ".", width_ << stage, i == 0 ? stride : 1,
                  i == 0 ? last_dilation : dilation_);
        net_.block(name, x);
      }
      outputs.push_back(x);
    }
    return outputs;
  }

 private:
  VarId conv_bn(VarId x, const std::string& conv, const std::string& bn, int64_t channels,
                int64_t kernel, int64_t stride, double scale = 1, int64_t groups = 1,
                int64_t dilation = 1) {
    x = net_.conv2d(conv, x,
                    {.channels = channels,
                     .kernel = kernel,
                     .stride = stride,
                     .padding = kernel / 2 * dilation,
                     .dilation = dilation,
                     .groups = groups});
    return net_.batch_norm(bn, x, {.scale = scale});
  }

  VarId deep_stem(VarId x) {
    const int64_t half = std::max<int64_t>(width_ / 2, 1);
    x = net_.relu(conv_bn(x, prefix_ + "conv1.0", prefix_ + "conv1.1", half, 3, 2));
    x = net_.relu(conv_bn(x, prefix_ + "conv1.3", prefix_ + "conv1.4", half, 3, 1));
    return conv_bn(x, prefix_ + "conv1.6", prefix_ + "bn1", width_, 3, 1);
  }

  VarId block(VarId x, const std::string& name, int64_t width, int64_t stride, int64_t dilation) {
    const int64_t outputs = form_.bottleneck ? 4 * width : width;
    VarId y;
    if (form_.bottleneck) {
      const int64_t inner = width * form_.group_width / 64 * form_.groups;
      y = net_.relu(conv_bn(x, name + "conv1", name + "bn1", inner, 1, 1));
      y = net_.relu(
          conv_bn(y, name + "conv2", name + "bn2", inner, 3, stride, 1, form_.groups, dilation));
      y = conv_bn(y, name + "conv3", name + "bn3", outputs, 1, 1, last_scale_);
    } else {
      y = net_.relu(conv_bn(x, name + "conv1", name + "bn1", width, 3, stride));
      y = conv_bn(y, name + "conv2", name + "bn2", outputs, 3, 1, last_scale_);
    }
    if (stride != 1 || net_.shape(x)[1] != outputs) x = shortcut(x, name, outputs, stride);
    return net_.relu(net_.add(y, x));
  }

  VarId shortcut(VarId x, const std::string& name, int64_t channels, int64_t stride) {
    if (!form_.deep) {
      return conv_bn(x, name + "downsample.0", name + "downsample.1", channels, 1, stride);
    }
    if (stride != 1) {
      x = net_.pool(x, {.type = "avg", .kernel = stride, .stride = stride, .ceil_mode = true});
    }
    return conv_bn(x, name + "downsample.1", name + "downsample.2", channels, 1, 1);
  }

  Network& net_;
  const ResnetForm& form_;
  const std::string prefix_;
  double last_scale_;
  int64_t width_;
  int64_t dilation_ = 1;
};

}  // namespace

std::vector<VarId> resnet_stages(Network& network, VarId image, const ResnetForm& form,
                                 const std::string& prefix, int64_t width) {
  return ResnetBuilder(network, form, prefix, width, 1).stages(image);
}

void define_resnet(ModelDef& def, const ResnetForm& form) {
  def.help = form.deep ? "residual network of the form D, timm's names"
                       : "residual network, v1.5, torchvision's names";
  def.schema = batch_norm_model_schema()
                   .boolean("zero_init_residual", form.deep,
                            "initialise the scale of each block's last batch norm with zero")
                   .integer("width", 64, 1, 4096, "channels of the first stage");
  def.build = image_classifier([form](Network& network, VarId image, const Settings& settings) {
    const double last_scale = settings.boolean("zero_init_residual") ? 0 : 1;
    ResnetBuilder builder(network, form, "", settings.integer("width"), last_scale);
    const VarId x = builder.stages(image).back();
    return network.linear("fc", network.flatten(network.global_pool(x)),
                          {.features = settings.integer("num_classes")});
  });
}

FLEET_MODEL(resnet18) { define_resnet(def, {.blocks = {2, 2, 2, 2}}); }
FLEET_MODEL(resnet34) { define_resnet(def, {.blocks = {3, 4, 6, 3}}); }
FLEET_MODEL(resnet50) { define_resnet(def, {.bottleneck = true, .blocks = {3, 4, 6, 3}}); }
FLEET_MODEL(resnet101) { define_resnet(def, {.bottleneck = true, .blocks = {3, 4, 23, 3}}); }
FLEET_MODEL(resnet152) { define_resnet(def, {.bottleneck = true, .blocks = {3, 8, 36, 3}}); }

}  // namespace fleet
