// vgg: timm's hidden layers are convolutions with the same values.
#include "models/weight_layout.h"

namespace fleet {
namespace {

LayoutTensor vgg_in_timm(const std::string& ours, const Shape& shape) {
  constexpr int64_t kLast = 7;  // height and width of the last map
  LayoutTensor tensor{ours, shape};
  replace_start({{"classifier.0.", "pre_logits.fc1."},
                 {"classifier.3.", "pre_logits.fc2."},
                 {"classifier.6.", "head.fc."}},
                &tensor.name);
  if (tensor.name == "pre_logits.fc1.weight") {
    tensor.shape = {shape[0], shape[1] / (kLast * kLast), kLast, kLast};
  } else if (tensor.name == "pre_logits.fc2.weight") {
    tensor.shape = {shape[0], shape[1], 1, 1};
  }
  return tensor;
}

}  // namespace

FLEET_WEIGHT_LAYOUT(vgg) {
  def.has = [](const std::string& network) { return network.starts_with("vgg"); };
  def.timm = renamed_to_timm(vgg_in_timm);
}

}  // namespace fleet
