// window_split: x [B, R, C, parts * heads * size] is cut into windows (ops/image_windows.h), and
// each token into heads: up to three parts (q, k and v of an attention) [B * windows, heads, tokens
// of a window, size], in one pass over memory. window_join puts them together again: each is the
// gradient of the other.
#include "ops/image_windows.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

std::map<std::string, Attribute> window_split_attributes() {
  std::map<std::string, Attribute> attributes = image_windows_attributes();
  attributes["heads"] = int64_t{1};
  return attributes;
}

void infer_window_split(ShapeContext& context) {
  require_image_windows(context);
  const ImageWindows windows = image_windows(context.attributes());
  const int64_t heads = context.attributes().integer("heads");
  const Shape& x = context.shape(0);
  context.require(x.rank() == 4 && x[1] == windows.rows() && x[2] == windows.columns(),
                  "x " + x.text() + " is not [batch, " + std::to_string(windows.rows()) + ", " +
                      std::to_string(windows.columns()) + ", channels]");
  int64_t parts = 0;
  for (int o = 0; o < 3; ++o) parts += context.has_output(o) ? 1 : 0;
  context.require(heads > 0 && x[3] % (parts * heads) == 0,
                  std::to_string(x[3]) + " channels cannot be cut into " + std::to_string(parts) +
                      " parts of " + std::to_string(heads) + " heads");
  const Shape part{x[0] * windows.count(), heads, windows.tokens(), x[3] / (parts * heads)};
  for (int o = 0; o < 3; ++o) context.set(o, part, context.dtype(0));
}

void infer_window_join(ShapeContext& context) {
  require_image_windows(context);
  const ImageWindows windows = image_windows(context.attributes());
  const Shape& part = context.shape(0);
  context.require(
      part.rank() == 4 && part[0] % windows.count() == 0 &&
          part[1] == context.attributes().integer("heads") && part[2] == windows.tokens(),
      "the part " + part.text() + " is not [batch * " + std::to_string(windows.count()) +
          ", heads, " + std::to_string(windows.tokens()) + ", size]");
  const int64_t parts = context.input_count();
  context.require(parts <= 3, "there are more than 3 parts");
  for (int i = 1; i < parts; ++i) {
    context.require(context.shape(i) == part && context.dtype(i) == context.dtype(0),
                    "the parts differ");
  }
  context.set(
      0, {part[0] / windows.count(), windows.rows(), windows.columns(), parts * part[1] * part[3]},
      context.dtype(0));
}

}  // namespace

FLEET_OP(window_split) {
  def.help =
      "the heads of tokens by windows: x [B, R, C, 3 heads size], an image of grid[0] x grid[1] "
      "windows of window[0] x window[1] tokens, rolled by shift, as q, k and v [B windows, heads, "
      "tokens of a window, size]";
  def.inputs = {{"x"}};
  def.outputs = {{"q"}, {"k", Slot::kOptional}, {"v", Slot::kOptional}};
  def.attributes = window_split_attributes();
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_window_split;
  def.gradient = [](GradientContext& context) {
    std::vector<VarId> parts;
    for (int o = 0; o < static_cast<int>(context.forward().outputs.size()); ++o) {
      if (context.output(o) == kNoVar) continue;
      context.require(context.output_gradient(o) != kNoVar, "nothing reads one of its parts");
      parts.push_back(context.output_gradient(o));
    }
    context.append("window_join", parts, {context.input_gradient(0)}, context.attributes());
  };
}

FLEET_OP(window_join) {
  def.help =
      "the opposite of window_split: parts [B windows, heads, tokens of a window, size] as [B, R, "
      "C, parts heads size]";
  def.inputs = {{"parts", Slot::kVariadic}};
  def.outputs = {{"y"}};
  def.attributes = window_split_attributes();
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = infer_window_join;
  def.gradient = [](GradientContext& context) {
    std::vector<VarId> parts;
    for (int i = 0; i < context.input_count(); ++i) parts.push_back(context.input_gradient(i));
    context.append("window_split", {context.output_gradient(0)}, parts, context.attributes());
  };
}

}  // namespace fleet
