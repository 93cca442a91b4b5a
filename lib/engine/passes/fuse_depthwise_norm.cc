// fuse_depthwise_norm: fuses batch normalizations into the depthwise convolutions around them
// (ops/conv2d_sums.cc), for backends with such kernels. The convolution also sums its result, so
// that the statistics of the normalization after it need no pass over memory. If the normalization
// before it ends in no activation, relu, relu6 or hardswish, and only the convolution and its
// weight gradient read its result, that result is not computed at all: both read the input of the
// normalization and transform it on the fly, and the data gradient ends in the gradients of the
// normalization.
//
// Any type. Runs after the backward pass and fuse_gradient_sums.
#include <algorithm>
#include <map>
#include <optional>

#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

// The operations around a depthwise convolution, as indices.
struct DepthwiseUnit {
  int conv = -1, norm = -1;  // the normalization of its result
  // The normalization before it, if that is not computed, and the gradients that read or end it.
  int before = -1, before_gradient = -1, weight_gradient = -1, data_gradient = -1;
};

class FuseDepthwiseNorm : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") >= 0,
                "fuse_depthwise_norm before the backward pass");
    program_ = &program;
    uses_.emplace(program);
    const int count = static_cast<int>(program.ops().size());
    int fused = 0;
    for (int i = 0; i < count; ++i) {
      if (auto unit = unit_of(i)) {
        rewrite(*unit);
        ++fused;
      }
    }
    if (fused == 0) return false;
    std::vector<Op> ops;
    for (int i = 0; i < count; ++i) {
      const auto found = replaced_.find(i);
      if (found == replaced_.end()) {
        ops.push_back(program.ops()[i]);
      } else {
        ops.insert(ops.end(), found->second.begin(), found->second.end());
      }
    }
    program.ops() = std::move(ops);
    log_fused("fuse_depthwise_norm", fused);
    return true;
  }

 private:
  const Op& op(int i) const { return program_->ops()[i]; }
  const Var& var(VarId id) const { return program_->var(id); }

  // What cuda::takes_depthwise_norm() takes.
  bool is_depthwise(const Op& conv) const {
    if (conv.type() != "conv2d" || conv.inputs[2] != kNoVar) return false;
    const Attributes& a = conv.attributes;
    const Shape &x = var(conv.inputs[0]).shape, &weight = var(conv.inputs[1]).shape;
    const std::vector<int64_t>&strides = a.integers("strides"), &paddings = a.integers("paddings");
    const int64_t size = weight[2];
    return a.text("input_activation").empty() && x[1] % 2 == 0 && a.integer("groups") == x[1] &&
           weight[0] == x[1] && weight[3] == size && (size == 3 || size == 5) &&
           strides[0] == strides[1] && strides[0] <= 2 && paddings[0] < size &&
           paddings[1] < size && a.integers("dilations") == std::vector<int64_t>{1, 1};
  }

  static bool is_norm(const Op& op) {
    return (op.type() == "batch_norm" || op.type() == "fused_bn_add_activation") &&
           !op.attributes.boolean("is_test") &&
           std::count(op.outputs.begin() + 1, op.outputs.begin() + 5, kNoVar) == 0;
  }

  static bool is_transformed_on_the_fly(const std::string& activation) {
    return activation.empty() || activation == "relu" || activation == "relu6" ||
           activation == "hardswish";
  }

  std::optional<DepthwiseUnit> unit_of(int conv) const {
    if (!is_depthwise(op(conv))) return std::nullopt;
    const VarId y = op(conv).outputs[0];
    DepthwiseUnit unit{.conv = conv};
    for (const int reader : uses_->readers(y)) {
      if (is_norm(op(reader)) && op(reader).inputs[0] == y) unit.norm = reader;
    }
    if (unit.norm < 0 || op(unit.norm).section != op(conv).section) return std::nullopt;
    if (replaced_.contains(unit.norm)) return std::nullopt;  // it is before another one
    find_before(unit);
    return unit;
  }

  // The reader of `id` with this type, if its readers are these two.
  int other_reader(VarId id, int one, const std::string& type) const {
    const std::vector<int>& readers = uses_->readers(id);
    if (readers.size() != 2) return -1;
    const int other = readers[0] == one ? readers[1] : readers[0];
    return other != one && op(other).type() == type ? other : -1;
  }

  // Completes the unit if the normalization before it need not be computed.
  void find_before(DepthwiseUnit& unit) const {
    const Op& conv = op(unit.conv);
    const VarId z = conv.inputs[0];
    const int before = uses_->writer(z);
    if (before < 0 || uses_->writers(z).size() != 1 || var(z).kind != VarKind::kTemporary) return;
    const Op& norm = op(before);
    if (norm.type() != "batch_norm" || !is_norm(norm) || norm.outputs[0] != z) return;
    if (norm.section != conv.section || replaced_.contains(before)) return;
    if (!is_transformed_on_the_fly(norm.attributes.text("activation"))) return;
    const int weight_gradient = other_reader(z, unit.conv, "conv2d_weight_grad");
    if (weight_gradient < 0 || op(weight_gradient).outputs[0] == kNoVar ||
        op(weight_gradient).outputs[1] != kNoVar) {
      return;
    }
    const int gradient = gradient_of(norm);
    if (gradient < 0) return;
    const VarId dz = op(gradient).inputs[5];
    const int data_gradient = uses_->writer(dz);
    if (data_gradient < 0 || uses_->readers(dz).size() != 1) return;
    const Op& data = op(data_gradient);
    if (data.type() != "conv2d_data_grad" || data.inputs[0] != conv.inputs[1]) return;
    unit.before = before;
    unit.before_gradient = gradient;
    unit.weight_gradient = weight_gradient;
    unit.data_gradient = data_gradient;
  }

  // The gradient of a batch_norm, if dy is one variable and dx is needed; -1 otherwise.
  int gradient_of(const Op& norm) const {
    int found = -1;
    for (const int reader : uses_->readers(norm.inputs[0])) {
      const std::string& type = op(reader).type();
      if (type != "batch_norm_grad" && type != "batch_norm_activation_grad") continue;
      const Op& gradient = op(reader);
      const VarId mean = gradient.inputs[type == "batch_norm_grad" ? 2 : 3];
      if (mean == norm.outputs[3] && gradient.inputs.size() == 6) found = reader;
    }
    return found >= 0 && op(found).outputs[0] != kNoVar ? found : -1;
  }

  static Attributes geometry(const Op& conv, const std::string& activation) {
    Attributes attributes;
    for (const char* name : {"strides", "paddings", "dilations", "groups"}) {
      attributes.set(name, conv.attributes.all().at(name));
    }
    attributes.set("norm_activation", activation);
    return attributes;
  }

  Op make(int like, const std::string& type, std::vector<VarId> inputs, std::vector<VarId> outputs,
          Attributes attributes) {
    return program_->make_op(op(like).section, type, std::move(inputs), std::move(outputs),
                             std::move(attributes));
  }

  // A normalization's statistics from its sums; the last three may be kNoVar.
  Op finalize(int norm, VarId sum, VarId squares, VarId inverse, VarId factor, VarId constant) {
    const Op of = op(norm);
    const Shape& x = var(of.inputs[0]).shape;
    return make(
        norm, "batch_norm_finalize",
        {sum, squares, of.inputs[1], of.inputs[2], of.inputs[3], of.inputs[4]},
        {of.outputs[1], of.outputs[2], of.outputs[3], of.outputs[4], inverse, factor, constant},
        {{"epsilon", of.attributes.number("epsilon")},
         {"momentum", of.attributes.number("momentum")},
         {"count", x.elements() / x[1]},
         {"shifted", true}});
  }

  VarId temporary(VarId like, const char* suffix) {
    return program_->temporary(var(like).name + suffix);
  }

  void rewrite(const DepthwiseUnit& unit) {
    const Op conv = op(unit.conv), norm = op(unit.norm);
    VarId x = conv.inputs[0], factor = kNoVar, constant = kNoVar;
    std::string activation;
    if (unit.before >= 0) {
      const Op before = op(unit.before);
      x = before.inputs[0];
      factor = temporary(x, ".factor");
      constant = temporary(x, ".constant");
      activation = before.attributes.text("activation");
      rewrite_before(unit, factor, constant);
    }
    const VarId y = conv.outputs[0];
    const VarId sum = temporary(y, ".sum"), squares = temporary(y, ".squares");
    replaced_[unit.conv] = {make(unit.conv, "conv2d_sums",
                                 {x, conv.inputs[1], factor, constant, norm.inputs[3]},
                                 {y, sum, squares}, geometry(conv, activation))};
    replaced_[unit.norm] = {finalize(unit.norm, sum, squares, kNoVar, kNoVar, kNoVar),
                            transformation(unit.norm)};
  }

  // The normalization with the given statistics, as in inference.
  Op transformation(int norm) {
    const Op of = op(norm);
    std::vector<VarId> inputs = of.inputs, outputs = of.outputs;
    inputs[3] = of.outputs[3];
    inputs[4] = of.outputs[4];
    std::fill(outputs.begin() + 1, outputs.begin() + 5, kNoVar);
    Attributes attributes = of.attributes;
    attributes.set("is_test", true);
    return make(norm, of.type(), inputs, outputs, attributes);
  }

  void rewrite_before(const DepthwiseUnit& unit, VarId factor, VarId constant) {
    const Op norm = op(unit.before), gradient = op(unit.before_gradient);
    const Op weight = op(unit.weight_gradient), data = op(unit.data_gradient);
    const VarId x = norm.inputs[0];
    const std::string activation = norm.attributes.text("activation");
    const VarId sum = temporary(x, ".sum"), squares = temporary(x, ".squares");
    const VarId inverse = temporary(x, ".inverse");
    replaced_[unit.before] = {
        make(unit.before, "batch_norm_sums", {x, norm.inputs[3]}, {sum, squares}, {}),
        finalize(unit.before, sum, squares, inverse, factor, constant)};
    Attributes attributes = geometry(weight, activation);
    attributes.set("kernel", weight.attributes.all().at("kernel"));
    replaced_[unit.weight_gradient] = {make(unit.weight_gradient, "conv2d_sums_weight_grad",
                                            {x, weight.inputs[1], factor, constant},
                                            {weight.outputs[0]}, attributes)};
    const auto or_temporary = [&](VarId id, const char* suffix) {
      return id != kNoVar ? id : temporary(x, suffix);
    };
    const VarId dz = temporary(x, ".dz");
    const VarId dscale = or_temporary(gradient.outputs[1], ".dscale");
    const VarId dbias = or_temporary(gradient.outputs[2], ".dbias");
    replaced_[unit.data_gradient] = {make(unit.data_gradient, "conv2d_relu_norm_grad",
                                          {data.inputs[0], data.inputs[1], x, norm.outputs[3],
                                           inverse, norm.inputs[1], norm.inputs[2]},
                                          {dz, dscale, dbias}, geometry(data, activation))};
    replaced_[unit.before_gradient] = {
        make(unit.before_gradient, "batch_norm_data_grad",
             {x, norm.inputs[1], norm.outputs[3], norm.outputs[4], dscale, dbias, dz, kNoVar},
             {gradient.outputs[0]}, {{"epsilon", norm.attributes.number("epsilon")}})};
  }

  Program* program_ = nullptr;
  std::optional<Uses> uses_;
  std::map<int, std::vector<Op>> replaced_;  // by index of the replaced operation
};

}  // namespace

FLEET_PASS(fuse_depthwise_norm) {
  def.help = "fuses batch normalizations into the depthwise convolutions before and after them";
  def.create = create_pass<FuseDepthwiseNorm>;
}

}  // namespace fleet
