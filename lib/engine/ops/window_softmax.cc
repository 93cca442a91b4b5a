// window_softmax: the probabilities of attention within windows (Liu et al., Swin Transformer,
// 2021): softmax over the last dimension of scale * scores + bias. scores [B * windows, heads, T,
// T]; table, float32 [offsets, heads], has the bias of a head for each offset between query and key
// (ops/image_windows.h). In a rolled image, keys of other regions get kOtherRegion besides.
//
// The gradient of the table sums over the batch in its order, in float32, so that it is the same on
// any number of threads.
#include "ops/image_windows.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

std::map<std::string, Attribute> window_softmax_attributes() {
  std::map<std::string, Attribute> attributes = image_windows_attributes();
  attributes["scale"] = 1.0;
  return attributes;
}

void infer_window_softmax(ShapeContext& context) {
  require_image_windows(context);
  const ImageWindows windows = image_windows(context.attributes());
  const Shape &scores = context.shape(0), &table = context.shape(1);
  const int64_t tokens = windows.tokens();
  context.require(scores.rank() == 4 && scores[0] % windows.count() == 0 && scores[2] == tokens &&
                      scores[3] == tokens,
                  "scores " + scores.text() + " are not [batch * " +
                      std::to_string(windows.count()) + ", heads, " + std::to_string(tokens) +
                      ", " + std::to_string(tokens) + "]");
  const Shape wanted{windows.offsets(), scores[1]};
  context.require(table == wanted, "table " + table.text() + " is not " + wanted.text());
  context.set_like(0, 0);
}

}  // namespace

FLEET_OP(window_softmax) {
  def.help =
      "softmax(scale scores + bias) over the keys of a window: scores [B windows, heads, T, T], "
      "and table [(2 window[0] - 1) (2 window[1] - 1), heads] with the bias by the offset of query "
      "and key; where shift rolls the image (see window_split), keys from its other side count "
      "for nothing";
  def.inputs = {{"scores"}, {"table"}};
  def.outputs = {{"y"}};
  def.attributes = window_softmax_attributes();
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1};
  def.inplace = {{0, 0}};
  def.infer = infer_window_softmax;
  def.gradient = [](GradientContext& context) {
    context.append("window_softmax_grad",
                   {context.output(0), context.input(1), context.output_gradient(0)},
                   {context.input_gradient(0), context.input_gradient(1)}, context.attributes());
  };
}

// With ds = y (dy - sum of y dy over a row): dscores = scale ds; dtable = the sum of ds by offset.
FLEET_OP(window_softmax_grad) {
  def.inputs = {{"y"}, {"table"}, {"dy"}};
  def.outputs = {{"dscores", Slot::kOptional}, {"dtable", Slot::kOptional}};
  def.attributes = window_softmax_attributes();
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.add_trait<MixedPrecision>().float32_inputs = {1};
  def.inplace = {{2, 0}};
  def.infer = [](ShapeContext& context) {
    context.set_like(0, 0);
    context.set(1, context.shape(1), DType::kFloat32);
  };
}

}  // namespace fleet
