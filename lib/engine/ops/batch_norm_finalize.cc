// The parts of a training batch_norm whose other parts are computed by convolutions
// (conv2d_sums.cc), or by separate operations with a sum over ranks in between
// (batch_norm_sums.cc). The passes fuse_depthwise_norm and sync_batch_norm insert them.
#include "graph/op.h"
#include "graph/program.h"
#include "ops/mixed_precision.h"

namespace fleet {

// From the sums of x and of its squares over `count` values per channel (with `shifted`: of x -
// mean and its squares), computes the batch's statistics, the running ones, and the normalization
// as factor x + constant. inverse: 1 / sqrt(saved_variance + epsilon).
FLEET_OP(batch_norm_finalize) {
  def.inputs = {{"sum"}, {"squares"}, {"scale"}, {"bias"}, {"mean"}, {"variance"}};
  // The states are not optional: a second run (the pass recompute) must keep the results of this
  // one, since `mean` has changed by then.
  def.outputs = {{"mean_out"},
                 {"variance_out"},
                 {"saved_mean"},
                 {"saved_variance"},
                 {"inverse", Slot::kOptional},
                 {"factor", Slot::kOptional},
                 {"constant", Slot::kOptional}};
  def.attributes = {
      {"epsilon", 1e-5}, {"momentum", 0.1}, {"count", int64_t{2}}, {"shifted", false}};
  def.add_trait<MixedPrecision>().precision = Precision::kBlack;
  def.infer = [](ShapeContext& context) {
    for (int i = 1; i < 6; ++i) {
      context.require(context.shape(i) == context.shape(0),
                      "all inputs must have one value per channel");
    }
    context.require(context.attributes().integer("count") > 1,
                    "training needs more than one value per channel");
    context.set_like(0, 4);
    context.set_like(1, 5);
    for (int i = 2; i < 7; ++i) context.set_like(i, 0);
  };
}

// dx of a training batch_norm from dz, the gradient of its result before any activation (with a
// mask: after it), and its parameters' gradients, summed over `count` values per channel; count 0:
// over those of x.
FLEET_OP(batch_norm_data_grad) {
  def.inputs = {{"x"},      {"scale"}, {"mean"}, {"variance"},
                {"dscale"}, {"dbias"}, {"dz"},   {"mask", Slot::kOptional}};
  def.outputs = {{"dx"}};
  def.attributes = {{"epsilon", 1e-5}, {"count", int64_t{0}}};
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.inplace = {{6, 0}};
  def.infer = [](ShapeContext& context) {
    context.require(
        context.shape(6) == context.shape(0),
        "dz " + context.shape(6).text() + " does not match x " + context.shape(0).text());
    context.set_like(0, 0);
  };
}

}  // namespace fleet
