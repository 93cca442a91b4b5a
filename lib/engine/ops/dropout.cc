// dropout: zeroes elements with probability p and scales the others by 1 / (1 - p)
// ("upscale_in_train"). The mask of element i of sample n depends only on (sample_key[n], salt, i)
// (ops/dropout_mask.h), not on the sample's position in the batch or the number of ranks. Each
// dropout of a network has its own salt. With is_test it is the identity.
//
// whole_samples: the mask of element 0 holds for all elements of a sample, so that samples are
// zeroed whole: stochastic depth (Huang et al. 2016).
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

const std::map<std::string, Attribute> kDropoutAttributes = {
    {"p", 0.5}, {"salt", int64_t{0}}, {"is_test", false}, {"whole_samples", false}};

void infer_dropout(ShapeContext& context) {
  const double p = context.attributes().number("p");
  context.require(p >= 0 && p <= 1, "p = " + std::to_string(p) + " is not a probability");
  if (!context.attributes().boolean("is_test")) {
    context.require(context.has_input(1), "training needs the input sample_key");
    const bool fits = context.shape(1).rank() == 1 && context.shape(0).rank() >= 1 &&
                      context.shape(1)[0] == context.shape(0)[0] &&
                      context.dtype(1) == DType::kInt64;
    context.require(fits, "sample_key is not int64[" + std::to_string(context.shape(0)[0]) + "]");
  }
  context.set_like(0, 0);
}

}  // namespace

FLEET_OP(dropout) {
  def.help =
      "elements are zero with probability p, the others are divided by 1 - p; each dropout of a "
      "network has its own salt; is_test leaves x as it is; whole_samples zeroes samples as a "
      "whole";
  def.inputs = {{"x"}, {"sample_key", Slot::kOptional}};
  def.outputs = {{"y"}};
  def.attributes = kDropoutAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = infer_dropout;
  def.gradient = [](GradientContext& context) {
    if (context.attributes().boolean("is_test")) {
      context.pass_gradient(0, context.output_gradient(0));
      return;
    }
    context.append("dropout_grad", {context.output_gradient(0), context.input(1)},
                   {context.input_gradient(0)}, context.attributes());
  };
}

// dx = dy with the same mask and scale: the mask is drawn again rather than stored
FLEET_OP(dropout_grad) {
  def.inputs = {{"dy"}, {"sample_key"}};
  def.outputs = {{"dx"}};
  def.attributes = kDropoutAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{0, 0}};
  def.infer = infer_dropout;
}

}  // namespace fleet
