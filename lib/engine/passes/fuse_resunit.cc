// fuse_resunit: fuses batch normalizations into the convolutions around them (ops/conv2d_sums.cc).
// A convolution followed by a training batch normalization also sums its result, so that the
// statistics need no pass over memory. If that normalization ends in a relu and its only reader is
// another such convolution, it is not computed at all: the reading convolution transforms its input
// on the fly, its weight gradient does so again, and its data gradient ends in the gradients of the
// normalization.
//
// float16 only: cuDNN has these graphs for no other type. Runs after the backward pass and
// fuse_gradient_sums. Scale and shift of an inner normalization are rounded to float16.
#include <algorithm>
#include <optional>

#include "base/log.h"
#include "passes/fuse_activation.h"
#include "passes/pass.h"
#include "passes/uses.h"

namespace fleet {
namespace {

constexpr int64_t kWholeChannels = 8;  // channel counts that need no padding

// A convolution, the normalization of its result, and the gradient of that, as indices of
// operations.
struct Unit {
  int conv = -1, norm = -1, gradient = -1;
  // For an inner normalization: the convolution that reads it, and that one's gradients.
  int reader = -1, weight_gradient = -1, data_gradient = -1;
  bool is_inner() const { return reader >= 0; }
};

class FuseResunit : public Pass {
 public:
  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") >= 0, "fuse_resunit before the backward pass");
    program_ = &program;
    uses_.emplace(program);
    find_units();
    if (units_.empty()) {
      spdlog::info("---  detected 0 subgraphs (fuse_resunit): it fuses convolutions in float16");
      return false;
    }
    for (Unit& unit : units_) find_inner(unit);
    for (const Unit& unit : units_) rewrite(unit);
    std::vector<Op> ops;
    for (size_t i = 0; i < program.ops().size(); ++i) {
      const auto found = replaced_.find(static_cast<int>(i));
      if (found == replaced_.end()) {
        ops.push_back(program.ops()[i]);
      } else {
        ops.insert(ops.end(), found->second.begin(), found->second.end());
      }
    }
    program.ops() = std::move(ops);
    log_fused("fuse_resunit", static_cast<int>(units_.size()));
    return true;
  }

 private:
  const Op& op(int i) const { return program_->ops()[i]; }
  const Var& var(VarId id) const { return program_->var(id); }

  static bool is_norm(const Op& op) {
    return (op.type() == "batch_norm" || op.type() == "fused_bn_add_activation") &&
           !op.attributes.boolean("is_test") &&
           std::count(op.outputs.begin() + 1, op.outputs.begin() + 5, kNoVar) == 0;
  }
  static bool is_norm_gradient(const Op& op) {
    return (op.type() == "batch_norm_grad" || op.type() == "fused_bn_add_activation_grad") &&
           !op.attributes.boolean("is_test");
  }

  // Convolutions that cuDNN must not compute, that are faster in our own kernel, or that pad a copy
  // of their image first.
  bool is_own(const Op& conv) const {
    return conv.attributes.integers("paddings").size() != 2 ||
           !conv.attributes.boolean("use_cudnn") ||
           (conv.attributes.integer("groups") > 1 && var(conv.inputs[1]).shape[1] == 1);
  }

  void find_units() {
    for (size_t i = 0; i < program_->ops().size(); ++i) {
      const Op& conv = op(static_cast<int>(i));
      if (conv.type() != "conv2d" || conv.inputs[2] != kNoVar || is_own(conv)) continue;
      const VarId y = conv.outputs[0];
      if (var(conv.inputs[0]).dtype != DType::kFloat16 || uses_->readers(y).size() != 2) continue;
      const int norm = uses_->readers(y)[0], gradient = uses_->readers(y)[1];
      if (!is_norm(op(norm)) || op(norm).inputs[0] != y || op(norm).section != conv.section) {
        continue;
      }
      if (!is_norm_gradient(op(gradient)) || op(gradient).inputs[0] != y) continue;
      units_.push_back({.conv = static_cast<int>(i), .norm = norm, .gradient = gradient});
    }
  }

  bool is_unit(int conv) const {
    return std::any_of(units_.begin(), units_.end(),
                       [conv](const Unit& unit) { return unit.conv == conv; });
  }

  // Completes the unit if its normalization need not be computed.
  void find_inner(Unit& unit) {
    const Op &norm = op(unit.norm), &gradient = op(unit.gradient);
    const VarId z = norm.outputs[0];
    if (norm.type() != "batch_norm" || norm.attributes.text("activation") != "relu") return;
    if (var(z).shape[1] % kWholeChannels != 0 || uses_->readers(z).empty() ||
        uses_->readers(z).size() > 2) {
      return;
    }
    const int reader = uses_->readers(z)[0];
    const int weight_gradient = uses_->readers(z).size() == 2 ? uses_->readers(z)[1] : -1;
    if (!is_unit(reader) || op(reader).attributes.integer("groups") != 1) return;
    if (weight_gradient >= 0 && (op(weight_gradient).type() != "conv2d_weight_grad" ||
                                 op(weight_gradient).outputs[0] == kNoVar)) {
      return;
    }
    const VarId dz = gradient.inputs[5];
    const int data_gradient = uses_->writer(dz);
    if (data_gradient < 0 || uses_->readers(dz).size() != 1 || gradient.outputs[0] == kNoVar)
      return;
    const Op& data = op(data_gradient);
    if (data.type() != "conv2d_data_grad" || data.inputs[0] != op(reader).inputs[1]) return;
    unit.reader = reader;
    unit.weight_gradient = weight_gradient;
    unit.data_gradient = data_gradient;
  }

  // The attributes that conv2d and conv2d_sums share.
  static Attributes geometry(const Op& conv) {
    Attributes attributes;
    for (const char* name : {"strides", "paddings", "dilations", "groups"}) {
      attributes.set(name, conv.attributes.all().at(name));
    }
    return attributes;
  }

  Op make(int like, const std::string& type, std::vector<VarId> inputs, std::vector<VarId> outputs,
          Attributes attributes) {
    return program_->make_op(op(like).section, type, std::move(inputs), std::move(outputs),
                             std::move(attributes));
  }

  // The input of a convolution after the rewrite, with its transformation, for later rewrites.
  struct Image {
    VarId x = kNoVar, factor = kNoVar, constant = kNoVar;
  };

  // Units are in the order of the forward pass, so the unit that produces an image comes first.
  void rewrite(const Unit& unit) {
    const Op conv = op(unit.conv), norm = op(unit.norm);
    const VarId y = conv.outputs[0];
    const std::string base = var(y).name;
    const auto temporary = [&](bool wanted, const char* suffix) {
      return wanted ? program_->temporary(base + suffix) : kNoVar;
    };
    const auto image = images_.find(conv.inputs[0]);
    const Image from = image == images_.end() ? Image{conv.inputs[0]} : image->second;
    const VarId sum = temporary(true, ".sum"), squares = temporary(true, ".squares");
    replaced_[unit.conv] = {make(unit.conv, "conv2d_sums",
                                 {from.x, conv.inputs[1], from.factor, from.constant},
                                 {y, sum, squares}, geometry(conv))};
    const bool inner = unit.is_inner();
    const VarId inverse = temporary(inner, ".inverse");
    const Image made{y, temporary(inner, ".factor"), temporary(inner, ".constant")};
    const Shape& shape = var(y).shape;
    std::vector<Op>& in_place = replaced_[unit.norm];
    in_place.push_back(
        make(unit.norm, "batch_norm_finalize",
             {sum, squares, norm.inputs[1], norm.inputs[2], norm.inputs[3], norm.inputs[4]},
             {norm.outputs[1], norm.outputs[2], norm.outputs[3], norm.outputs[4], inverse,
              made.factor, made.constant},
             {{"epsilon", norm.attributes.number("epsilon")},
              {"momentum", norm.attributes.number("momentum")},
              {"count", shape.elements() / shape[1]}}));
    if (!inner) {
      in_place.push_back(transformation(unit, norm));
      return;
    }
    images_[norm.outputs[0]] = made;
    rewrite_backward(unit, norm, made, inverse);
  }

  // The normalization with given statistics, as in inference.
  Op transformation(const Unit& unit, const Op& norm) {
    std::vector<VarId> inputs = norm.inputs, outputs = norm.outputs;
    inputs[3] = norm.outputs[3];
    inputs[4] = norm.outputs[4];
    std::fill(outputs.begin() + 1, outputs.begin() + 5, kNoVar);
    Attributes attributes = norm.attributes;
    attributes.set("is_test", true);
    return make(unit.norm, norm.type(), inputs, outputs, attributes);
  }

  void rewrite_backward(const Unit& unit, const Op& norm, const Image& image, VarId inverse) {
    const Op gradient = op(unit.gradient), data = op(unit.data_gradient);
    if (unit.weight_gradient >= 0) {
      const Op weight = op(unit.weight_gradient);
      Attributes attributes = geometry(weight);
      attributes.set("kernel", weight.attributes.all().at("kernel"));
      replaced_[unit.weight_gradient] = {
          make(unit.weight_gradient, "conv2d_sums_weight_grad",
               {image.x, weight.inputs[1], image.factor, image.constant}, {weight.outputs[0]},
               attributes)};
    }
    const std::string base = var(image.x).name;
    const auto or_temporary = [&](VarId id, const char* suffix) {
      return id != kNoVar ? id : program_->temporary(base + suffix);
    };
    const VarId dz = program_->temporary(base + ".dz");
    const VarId dscale = or_temporary(gradient.outputs[1], ".dscale");
    const VarId dbias = or_temporary(gradient.outputs[2], ".dbias");
    replaced_[unit.data_gradient] = {make(unit.data_gradient, "conv2d_relu_norm_grad",
                                          {data.inputs[0], data.inputs[1], image.x, norm.outputs[3],
                                           inverse, norm.inputs[1], norm.inputs[2]},
                                          {dz, dscale, dbias}, geometry(data))};
    replaced_[unit.gradient] = {
        make(unit.gradient, "batch_norm_data_grad",
             {image.x, norm.inputs[1], norm.outputs[3], norm.outputs[4], dscale, dbias, dz, kNoVar},
             {gradient.outputs[0]}, {{"epsilon", norm.attributes.number("epsilon")}})};
  }

  Program* program_ = nullptr;
  std::optional<Uses> uses_;
  std::vector<Unit> units_;
  std::map<VarId, Image> images_;  // variable that is no longer computed -> its replacement
  std::map<int, std::vector<Op>> replaced_;  // by index of the replaced operation
};

}  // namespace

FLEET_PASS(fuse_resunit) {
  def.help = "fuses batch normalizations into the float16 convolutions before and after them";
  def.create = create_pass<FuseResunit>;
}

}  // namespace fleet
