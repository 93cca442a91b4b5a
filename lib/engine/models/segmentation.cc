#include "models/segmentation.h"

#include <algorithm>
#include <utility>

#include "models/mobilenet_v3.h"
#include "models/resnet.h"

namespace fleet {
namespace {

constexpr int64_t kClasses = 21;  // of Pascal VOC
constexpr const char *kAux = "aux", *kDropout = "dropout";
constexpr double kAuxDropout = 0.1;

}  // namespace

BackboneMaps dilated_resnet_maps(Network& network, VarId image, const std::vector<int>& blocks) {
  const ResnetForm form{.bottleneck = true, .blocks = blocks, .dilated = true};
  const std::vector<VarId> stages = resnet_stages(network, image, form, "backbone.");
  return {.out = stages[3], .early = stages[2]};
}

BackboneMaps dilated_mobilenet_maps(Network& network, VarId image) {
  constexpr size_t kEighth = 4;  // the first part whose map is an eighth of the image
  const std::vector<VarId> parts = dilated_mobilenet_v3_large(network, image, "backbone.");
  return {.out = parts.back(), .early = parts[kEighth]};
}

Schema segmentation_schema() { return batch_norm_model_schema(kClasses); }

VarId conv_bn_relu(Network& network, const std::string& conv, const std::string& norm, VarId x,
                   const Conv2d& layer) {
  Conv2d own = layer;
  own.init = WeightInit::kTorchDefault;
  return network.relu(network.batch_norm(norm, network.conv2d(conv, x, own)));
}

VarId pixel_classes(Network& network, const std::string& name, VarId x, int64_t classes) {
  return network.conv2d(
      name, x, {.channels = classes, .kernel = 1, .bias = true, .init = WeightInit::kTorchDefault});
}

VarId resized_like(Network& network, VarId x, VarId like) {
  const Shape size = network.shape(like);
  return network.apply("resize_bilinear", {x}, {{"size", std::vector<int64_t>{size[2], size[3]}}});
}

VarId fcn_head(Network& network, const std::string& name, VarId map, int64_t classes,
               double dropout) {
  const Conv2d layer{.channels = network.shape(map)[1] / 4, .kernel = 3, .padding = 1};
  VarId x = conv_bn_relu(network, name + ".0", name + ".1", map, layer);
  x = network.dropout(x, dropout);
  return network.block(name, pixel_classes(network, name + ".4", x, classes));
}

void define_segmentation(ModelDef& def, const std::string& help, Backbone backbone,
                         SegmentationHead head, double dropout) {
  def.help = help;
  def.schema =
      segmentation_schema()
          .boolean(
              kAux, true,
              "a second head, on an earlier map, whose loss training adds; evaluations do without")
          .number(kDropout, dropout, 0, 0.99,
                  "dropout rate in the head; in the second one at most 0.1");
  def.outputs = {"pixel_logits", "aux_logits"};
  def.ports = [](const Settings& settings) {
    ModelPorts ports{.inputs = {"image"}, .outputs = {"pixel_logits"}};
    if (settings.boolean(kAux)) ports.outputs.emplace_back("aux_logits");
    return ports;
  };
  def.build = [backbone = std::move(backbone), head = std::move(head)](
                  Network& network, const NamedVars& inputs, const Settings& settings) {
    const VarId image = inputs.at("image");
    const int64_t classes = settings.integer("num_classes");
    const double rate = settings.number(kDropout);
    const BackboneMaps maps = backbone(network, image);
    NamedVars outputs;
    outputs["pixel_logits"] = resized_like(network, head(network, maps.out, classes, rate), image);
    if (!network.wants("aux_logits")) return outputs;
    if (network.training()) {
      const VarId early =
          fcn_head(network, "aux_classifier", maps.early, classes, std::min(rate, kAuxDropout));
      outputs["aux_logits"] = resized_like(network, early, image);
    } else {
      outputs["aux_logits"] = outputs["pixel_logits"];
    }
    return outputs;
  };
}

}  // namespace fleet
