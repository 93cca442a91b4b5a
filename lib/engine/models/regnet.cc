// regnet_y_400mf to 8gf: Radosavovic et al. 2020: bottlenecks without a change of width, in groups,
// with squeeze and excitation; torchvision's names and initialisation.
#include <cmath>

#include "models/model.h"

namespace fleet {
namespace {

struct RegnetStage {
  int64_t blocks, channels;
};
struct RegnetForm {
  std::vector<RegnetStage> stages;
  int64_t group_width;
};

class RegnetBuilder {
 public:
  RegnetBuilder(Network& network, const RegnetForm& form) : net_(network), form_(form) {}

  VarId build(VarId image, int64_t classes) {
    VarId x = conv_bn(image, "stem", {.channels = 32, .kernel = 3, .stride = 2, .padding = 1});
    x = net_.block("stem", net_.relu(x));
    for (size_t s = 0; s < form_.stages.size(); ++s) {
      const std::string stage = "block" + std::to_string(s + 1);
      for (int64_t i = 0; i < form_.stages[s].blocks; ++i) {
        const std::string name = "trunk_output." + stage + "." + stage + "-" + std::to_string(i);
        x = net_.block(name, block(x, name, form_.stages[s].channels, i == 0 ? 2 : 1));
      }
    }
    return net_.linear("fc", net_.flatten(net_.global_pool(x)),
                       {.features = classes, .init = WeightInit::kNormal001});
  }

 private:
  // NAME.0 and NAME.1
  VarId conv_bn(VarId x, const std::string& name, const Conv2d& layer) {
    return net_.batch_norm(name + ".1", net_.conv2d(name + ".0", x, layer));
  }

  VarId block(VarId x, const std::string& name, int64_t channels, int64_t stride) {
    const int64_t inputs = net_.shape(x)[1];
    VarId y = net_.relu(conv_bn(x, name + ".f.a", {.channels = channels, .kernel = 1}));
    y = net_.relu(conv_bn(y, name + ".f.b",
                          {.channels = channels,
                           .kernel = 3,
                           .stride = stride,
                           .padding = 1,
                           .groups = channels / form_.group_width}));
    // A quarter of the channels that the block began with; halves to even, as Python rounds.
    const auto squeezed = static_cast<int64_t>(std::nearbyint(static_cast<double>(inputs) / 4));
    y = net_.squeeze_excitation(name + ".f.se", y, squeezed, "relu", "sigmoid");
    y = conv_bn(y, name + ".f.c", {.channels = channels, .kernel = 1});
    if (inputs != channels || stride != 1) {
      x = conv_bn(x, name + ".proj", {.channels = channels, .kernel = 1, .stride = stride});
    }
    return net_.relu(net_.add(x, y));
  }

  Network& net_;
  const RegnetForm& form_;
};

void define_regnet(ModelDef& def, const RegnetForm& form) {
  def.help = "RegNet Y, torchvision's names";
  def.schema = batch_norm_model_schema();
  def.build = image_classifier([form](Network& network, VarId image, const Settings& settings) {
    return RegnetBuilder(network, form).build(image, settings.integer("num_classes"));
  });
}

}  // namespace

FLEET_MODEL(regnet_y_400mf) { define_regnet(def, {{{1, 48}, {3, 104}, {6, 208}, {6, 440}}, 8}); }
FLEET_MODEL(regnet_y_800mf) { define_regnet(def, {{{1, 64}, {3, 144}, {8, 320}, {2, 784}}, 16}); }
FLEET_MODEL(regnet_y_1_6gf) { define_regnet(def, {{{2, 48}, {6, 120}, {17, 336}, {2, 888}}, 24}); }
FLEET_MODEL(regnet_y_3_2gf) { define_regnet(def, {{{2, 72}, {5, 216}, {13, 576}, {1, 1512}}, 24}); }
FLEET_MODEL(regnet_y_8gf) { define_regnet(def, {{{2, 224}, {4, 448}, {10, 896}, {1, 2016}}, 56}); }

}  // namespace fleet
