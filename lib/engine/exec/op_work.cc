#include "exec/op_work.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fleet {
namespace {

double elements(const Program& program, const std::vector<VarId>& ids, int i) {
  if (i >= static_cast<int>(ids.size()) || ids[i] == kNoVar) return 0;
  return static_cast<double>(program.var(ids[i]).shape.elements());
}

// Where a convolution has its weight and the image of which each element is a sum over weights, or
// contributes to one for each weight.
struct Slots {
  bool weight_is_output;
  int weight, image;
  bool image_is_output;
};
const std::map<std::string, Slots> kConvolutions = {
    {"conv2d", {false, 1, 0, true}},
    {"conv2d_sums", {false, 1, 0, true}},
    {"conv2d_weight_grad", {true, 0, 1, false}},
    {"conv2d_sums_weight_grad", {true, 0, 1, false}},
    {"conv2d_data_grad", {false, 0, 1, false}},
    {"conv2d_relu_norm_grad", {false, 0, 1, false}},
    {"conv2d_transpose", {false, 1, 0, false}},
    {"conv2d_transpose_weight_grad", {true, 0, 0, false}},
};

double convolution_flops(const Program& program, const Op& op, const Slots& slots) {
  const std::vector<VarId>& with_weight = slots.weight_is_output ? op.outputs : op.inputs;
  const std::vector<VarId>& with_image = slots.image_is_output ? op.outputs : op.inputs;
  const VarId weight = with_weight[slots.weight];
  if (weight == kNoVar) return 0;  // only the bias has a gradient
  const Shape& shape = program.var(weight).shape;
  const int64_t per_channel = shape.elements() / shape[0];
  return 2 * elements(program, with_image, slots.image) * static_cast<double>(per_channel);
}

// m k, k n and m n elements, for each of a batch of matrices.
double product_flops(const Program& program, const Op& op) {
  double batch = 1;
  if (op.outputs[0] != kNoVar && op.type() == "matmul") {
    const Shape& shape = program.var(op.outputs[0]).shape;
    for (int d = 0; d + 2 < shape.rank(); ++d) batch *= static_cast<double>(shape[d]);
  }
  return 2 * std::sqrt(elements(program, op.inputs, 0) * elements(program, op.inputs, 1) *
                       elements(program, op.outputs, 0) / batch);
}

}  // namespace

OpWork work_of(const Program& program, const Op& op) {
  OpWork work;
  for (const std::vector<VarId>* side : {&op.inputs, &op.outputs}) {
    for (VarId id : *side) {
      if (id == kNoVar) continue;
      const Var& var = program.var(id);
      work.bytes +=
          static_cast<double>(var.shape.elements()) * static_cast<double>(size_of(var.dtype));
    }
  }
  const auto convolution = kConvolutions.find(op.type());
  if (convolution != kConvolutions.end()) {
    work.flops = convolution_flops(program, op, convolution->second);
  } else if (op.type() == "matmul" || op.type().starts_with("fc")) {
    work.flops = product_flops(program, op);
  }
  return work;
}

// On the CPU: fitted to the operations of GoogLeNet and LeNet on two cores of an AMD EPYC.
ComputeRates rates_of(const std::string& backend, int cores) {
  if (backend == "cpu") {
    return {.flops = 1e11,
            .bytes = 1e10,
            .parts = cores,
            .undivided = true,
            .start = 2.5e-6,
            .together = 6.5e-6,
            .uneven = 0.25,
            .uneven_most = 30e-6,
            .join = 4e-6,
            .hand_over = 1e-6,
            .exchange = 2e10};
  }
  return {.flops = 3e13,
          .bytes = 1.5e12,
          .parts = 1,
          .undivided = false,
          .start = 3e-6,
          .together = 0,
          .uneven = 0,
          .uneven_most = 0,
          .join = 2e-6,
          .hand_over = 2e-6,
          .exchange = 1e15};
}

double ComputeRates::seconds(const OpWork& work, double on) const {
  const double busy = std::max(work.flops / flops, work.bytes / bytes) / on;
  if (on <= 1) return start + busy;
  return start + together + busy + std::min(uneven * busy, uneven_most);
}

double ComputeRates::share(int streams) const {
  return undivided ? std::max(1, parts / streams) : 1.0 * parts / streams;
}

}  // namespace fleet
