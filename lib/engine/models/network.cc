#include "models/network.h"

#include <cmath>

namespace fleet {
namespace init {

Init constant(double value) { return {.kind = Init::kConstant, .a = value}; }
Init uniform(double bound) { return {.kind = Init::kUniform, .a = -bound, .b = bound}; }
Init normal(double deviation) { return {.kind = Init::kNormal, .a = 0, .b = deviation}; }

Init kaiming_normal_fan_out(const Shape& weight) {
  const int64_t fan_out = weight[0] * weight.elements() / (weight[0] * weight[1]);
  return normal(std::sqrt(2.0 / static_cast<double>(fan_out)));
}

Init kaiming_normal_fan_in(const Shape& weight) {
  return normal(
      std::sqrt(2.0 * static_cast<double>(weight[0]) / static_cast<double>(weight.elements())));
}

Init torch_default(const Shape& weight) {
  const int64_t fan_in = weight.elements() / weight[0];
  return uniform(1 / std::sqrt(static_cast<double>(fan_in)));
}

}  // namespace init

namespace {

Init weight_init(WeightInit kind, const Shape& weight) {
  switch (kind) {
    case WeightInit::kTorchDefault:
    case WeightInit::kTorchDefaultNoBias:
      return init::torch_default(weight);
    case WeightInit::kKaimingNormalFanOut:
      return init::kaiming_normal_fan_out(weight);
    case WeightInit::kKaimingNormalFanIn:
      return init::kaiming_normal_fan_in(weight);
    case WeightInit::kUniformFanOut:
      return init::uniform(1 / std::sqrt(static_cast<double>(weight[0])));
    case WeightInit::kNormal001:
      return init::normal(0.01);
    case WeightInit::kNormal002:
      return init::normal(0.02);
    case WeightInit::kZero:
      return init::constant(0);
  }
  FLEET_CHECK(false, "unknown initialisation");
}

Init bias_init(WeightInit kind, const Shape& weight) {
  return kind == WeightInit::kTorchDefault ? init::torch_default(weight) : init::constant(0);
}

std::vector<int64_t> pair_of(int64_t value) { return {value, value}; }

}  // namespace

Network::Network(Program& program, SectionId section, bool training, VarId sample_key)
    : program_(program), section_(section), training_(training), sample_key_(sample_key) {}

VarId Network::conv2d(const std::string& name, VarId x, const Conv2d& layer) {
  claim(name);
  FLEET_CHECK(shape(x).rank() == 4, "conv2d '" + name + "' of " + shape(x).text());
  const Shape weight = {layer.channels, shape(x)[1] / layer.groups, layer.kernel, layer.kernel};
  std::vector<VarId> inputs = {
      x, parameter(name + ".weight", weight, weight_init(layer.init, weight))};
  if (layer.bias) {
    inputs.push_back(parameter(name + ".bias", {layer.channels}, bias_init(layer.init, weight)));
  }
  return emit("conv2d", inputs,
              {{"strides", pair_of(layer.stride)},
               {"paddings", pair_of(layer.padding)},
               {"dilations", pair_of(layer.dilation)},
               {"groups", layer.groups}},
              name);
}

VarId Network::batch_norm(const std::string& name, VarId x, const BatchNorm& layer) {
  claim(name);
  const Shape channels = {shape(x)[1]};
  const VarId scale = parameter(name + ".weight", channels, init::constant(layer.scale));
  const VarId bias = parameter(name + ".bias", channels, init::constant(0));
  const VarId mean = state(name + ".running_mean", channels, init::constant(0));
  const VarId variance = state(name + ".running_var", channels, init::constant(1));
  const std::string base = hint(name);
  const VarId y = program_.temporary(base + ".out");
  std::vector<VarId> outputs = {y};
  if (training_) {
    outputs.insert(outputs.end(), {mean, variance, program_.temporary(base + ".saved_mean"),
                                   program_.temporary(base + ".saved_variance")});
  }
  program_.append(
      section_, "batch_norm", {x, scale, bias, mean, variance}, outputs,
      {{"epsilon", layer.epsilon}, {"momentum", layer.momentum}, {"is_test", !training_}});
  return y;
}

VarId Network::pool(VarId x, const Pool2d& layer) {
  const std::string base = hint("pool");
  std::vector<VarId> outputs = {program_.temporary(base + ".out")};
  if (training_ && layer.type == "max") outputs.push_back(program_.temporary(base + ".mask"));
  program_.append(section_, "pool2d", {x}, outputs,
                  {{"type", layer.type},
                   {"kernel", pair_of(layer.kernel)},
                   {"strides", pair_of(layer.stride)},
                   {"paddings", pair_of(layer.padding)},
                   {"ceil_mode", layer.ceil_mode}});
  return outputs[0];
}

VarId Network::global_pool(VarId x) {
  const VarId y = program_.temporary(hint("global_pool.out"));
  program_.append(section_, "pool2d", {x}, {y}, {{"type", std::string("avg")}, {"global", true}});
  return y;
}

VarId Network::flatten(VarId x) { return emit("flatten", {x}, {}, "flatten"); }

VarId Network::linear(const std::string& name, VarId x, const Linear& layer) {
  claim(name);
  const int64_t last = shape(x).rank() - 1;
  FLEET_CHECK(last >= 1, "linear '" + name + "' of " + shape(x).text());
  const Shape weight = {layer.features, shape(x)[static_cast<int>(last)]};
  std::vector<VarId> inputs = {
      x, parameter(name + ".weight", weight, weight_init(layer.init, weight))};
  if (layer.bias) {
    inputs.push_back(parameter(name + ".bias", {layer.features}, bias_init(layer.init, weight)));
  }
  return emit("fc", inputs, {{"axis", last}}, name);
}

VarId Network::layer_norm(const std::string& name, VarId x, const LayerNorm& layer) {
  claim(name);
  const int64_t last = shape(x).rank() - 1;
  const Shape row = {shape(x)[static_cast<int>(last)]};
  const VarId scale = parameter(name + ".weight", row, init::constant(1));
  const VarId bias = parameter(name + ".bias", row, init::constant(0));
  const std::string base = hint(name);
  std::vector<VarId> outputs = {program_.temporary(base + ".out")};
  if (training_) {
    outputs.insert(outputs.end(), {program_.temporary(base + ".saved_mean"),
                                   program_.temporary(base + ".saved_variance")});
  }
  program_.append(section_, "layer_norm", {x, scale, bias}, outputs,
                  {{"epsilon", layer.epsilon}, {"begin_norm_axis", last}});
  return outputs[0];
}

VarId Network::activation(const std::string& type, VarId x) { return emit(type, {x}, {}, type); }

VarId Network::add(VarId a, VarId b) { return emit("elementwise_add", {a, b}, {}, "add"); }

VarId Network::concat(const std::vector<VarId>& parts) {
  return emit("concat", parts, {{"axis", int64_t{1}}}, "concat");
}

VarId Network::transpose(VarId x, const std::vector<int64_t>& perm) {
  return emit("transpose", {x}, {{"perm", perm}}, "transpose");
}

VarId Network::reshape(VarId x, const std::vector<int64_t>& shape) {
  return emit("reshape", {x}, {{"shape", shape}}, "reshape");
}

VarId Network::apply(const std::string& type, std::vector<VarId> inputs, Attributes attributes) {
  return emit(type, std::move(inputs), std::move(attributes), type);
}

VarId Network::scale_channels(VarId x, VarId gate) {
  return emit("elementwise_mul", {x, gate}, {{"axis", int64_t{0}}}, "scale_channels");
}

VarId Network::squeeze_excitation(const std::string& name, VarId x, int64_t squeezed,
                                  const std::string& inner, const std::string& outer) {
  const int64_t channels = shape(x)[1];
  VarId gate =
      conv2d(name + ".fc1", global_pool(x), {.channels = squeezed, .kernel = 1, .bias = true});
  gate = conv2d(name + ".fc2", activation(inner, gate),
                {.channels = channels, .kernel = 1, .bias = true});
  return scale_channels(x, activation(outer, gate));
}

VarId Network::drop_path(VarId x, double p) {
  if (p == 0 || !training_) return x;
  const int64_t samples = shape(x)[0];
  const VarId ones =
      emit("fill", {}, {{"shape", std::vector<int64_t>{samples}}, {"value", 1.0}}, "drop_path");
  return emit("elementwise_mul", {x, dropout(ones, p)}, {{"axis", int64_t{0}}}, "drop_path");
}

VarId Network::dropout(VarId x, double p) {
  if (p == 0 || !training_) return x;
  FLEET_CHECK(sample_key_ != kNoVar, "dropout without sample keys");
  return emit("dropout", {x, sample_key_}, {{"p", p}, {"salt", dropouts_++}}, "dropout");
}

VarId Network::block(const std::string& name, VarId x) {
  for (const Block& block : blocks_) {
    FLEET_CHECK(block.name != name, "block '" + name + "' is there twice");
  }
  blocks_.push_back({name, x});
  return x;
}

void Network::device(const std::string& name) {
  const std::vector<Op>& ops = program_.ops();
  const bool first = ops.empty() || ops.back().section != section_;
  if (!devices_.empty() && devices_.back().name == name) return;
  devices_.push_back({name, first ? kNoVar : ops.back().outputs[0]});
}

VarId Network::parameter(const std::string& name, const Shape& shape, Init init) {
  const VarId id = find(name, VarKind::kParameter, shape);
  return id == kNoVar ? program_.parameter(name, shape, init) : id;
}

VarId Network::state(const std::string& name, const Shape& shape, Init init) {
  const VarId id = find(name, VarKind::kState, shape);
  return id == kNoVar ? program_.state(name, shape, init) : id;
}

void Network::claim(const std::string& layer) {
  FLEET_CHECK(layers_.insert(layer).second, "layer '" + layer + "' is there twice");
}

VarId Network::find(const std::string& name, VarKind kind, const Shape& shape) const {
  const VarId id = program_.find(name);
  if (id == kNoVar) return kNoVar;
  const Var& var = program_.var(id);
  FLEET_CHECK(var.kind == kind, "'" + name + "' is something else already");
  FLEET_CHECK(var.shape == shape,
              "'" + name + "' is " + var.shape.text() + " already, not " + shape.text());
  return id;
}

std::string Network::hint(const std::string& name) const {
  return training_ ? name : "evaluate/" + name;
}

VarId Network::emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes,
                    const std::string& name) {
  return program_.emit(section_, type, std::move(inputs), std::move(attributes), hint(name))[0];
}

}  // namespace fleet
