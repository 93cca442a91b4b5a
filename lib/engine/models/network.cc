#include "models/network.h"

#include <cmath>
#include <optional>

#include "base/text.h"
#include "ops/arithmetic.h"
#include "ops/element_formula.h"
#include "ops/embedding.h"
#include "ops/mixed_precision.h"

namespace fleet {
namespace {

// An error in the network.
[[noreturn]] void refuse(const std::string& where, const std::string& what,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

void check_weight(const Shape& weight, int least_rank) {
  const bool positive = std::all_of(weight.begin(), weight.end(), [](int64_t n) { return n > 0; });
  if (weight.rank() >= least_rank && positive) return;
  refuse("initial values", "a weight is " + weight.text(),
         "give it at least " + std::to_string(least_rank) + " dimensions, each from 1 up");
}

}  // namespace

namespace init {

Init constant(double value) { return {.kind = Init::kConstant, .a = value}; }
Init uniform(double bound) { return {.kind = Init::kUniform, .a = -bound, .b = bound}; }
Init normal(double deviation) { return {.kind = Init::kNormal, .a = 0, .b = deviation}; }

Init kaiming_normal_fan_out(const Shape& weight) {
  check_weight(weight, 2);
  const int64_t fan_out = weight[0] * weight.elements() / (weight[0] * weight[1]);
  return normal(std::sqrt(2.0 / static_cast<double>(fan_out)));
}

Init kaiming_normal_fan_in(const Shape& weight) {
  check_weight(weight, 1);
  return normal(
      std::sqrt(2.0 * static_cast<double>(weight[0]) / static_cast<double>(weight.elements())));
}

Init torch_default(const Shape& weight) {
  check_weight(weight, 1);
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

// Of a convolution of x: a pair, or four if both sides differ.
std::vector<int64_t> paddings_of(const Conv2d& layer, const Shape& x) {
  if (!layer.same_padding) return pair_of(layer.padding);
  std::vector<int64_t> begins, ends;
  for (int d = 2; d < 4; ++d) {
    const int64_t windows = (x[d] + layer.stride - 1) / layer.stride;
    const int64_t reach = (windows - 1) * layer.stride + layer.dilation * (layer.kernel - 1) + 1;
    const int64_t total = std::max<int64_t>(reach - x[d], 0);
    begins.push_back(total / 2);
    ends.push_back(total - total / 2);
  }
  if (begins == ends) return begins;
  return {begins[0], begins[1], ends[0], ends[1]};
}

// A number of a layer: its channels, the size of its kernel.
void check_number(const std::string& where, const char* what, int64_t value) {
  constexpr int64_t kMost = int64_t{1} << 31;
  if (value >= 1 && value <= kMost) return;
  refuse(where, std::string(what) + " is " + std::to_string(value),
         "set it to a number from 1 to " + std::to_string(kMost));
}

// Whether an input is float32 whatever the type of the others.
bool stays_float32(const OpDef& def, int input) {
  const std::vector<int>& all = mixed_precision_of(def).float32_inputs;
  return std::find(all.begin(), all.end(), input) != all.end();
}

std::string text_of_slots(const std::vector<SlotDef>& slots) {
  std::vector<std::string> names;
  for (const SlotDef& slot : slots) {
    names.push_back(slot.name + (slot.kind == Slot::kOptional   ? " (optional)"
                                 : slot.kind == Slot::kVariadic ? " (one or more)"
                                                                : ""));
  }
  return names.empty() ? "no inputs" : join(names, ", ");
}

}  // namespace

Network::Network(Program& program, SectionId section, bool training, VarId sample_key)
    : program_(program), section_(section), training_(training), sample_key_(sample_key) {}

VarId Network::conv2d(const std::string& name, VarId x, const Conv2d& layer) {
  claim(name);
  const std::string where = "conv2d '" + name + "'";
  check_rank(where, x, 4, 4);
  check_number(where, "channels", layer.channels);
  check_number(where, "kernel", layer.kernel);
  check_number(where, "groups", layer.groups);
  check_number(where, "stride", layer.stride);
  for (const int64_t channels : {shape(x)[1], layer.channels}) {
    if (channels % layer.groups == 0) continue;
    refuse(where,
           std::to_string(layer.groups) + " groups do not divide " + std::to_string(channels) +
               " channels",
           "use groups that divide the channels of x and of the layer");
  }
  const Shape weight = {layer.channels, shape(x)[1] / layer.groups, layer.kernel, layer.kernel};
  std::vector<VarId> inputs = {
      x, parameter(name + ".weight", weight, weight_init(layer.init, weight))};
  if (layer.bias) {
    inputs.push_back(parameter(name + ".bias", {layer.channels}, bias_init(layer.init, weight)));
  }
  return emit("conv2d", inputs,
              {{"strides", pair_of(layer.stride)},
               {"paddings", paddings_of(layer, shape(x))},
               {"dilations", pair_of(layer.dilation)},
               {"groups", layer.groups}},
              name);
}

VarId Network::batch_norm(const std::string& name, VarId x, const BatchNorm& layer) {
  claim(name);
  check_rank("batch_norm '" + name + "'", x, 2, 4);
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
  program_.append(section_, "batch_norm", {x, scale, bias, mean, variance}, outputs,
                  {{"epsilon", batch_norm_epsilon_ > 0 ? batch_norm_epsilon_ : layer.epsilon},
                   {"momentum", layer.momentum},
                   {"is_test", !training_}});
  return y;
}

VarId Network::pool(VarId x, const Pool2d& layer) {
  check_rank("pool", x, 4, 4);
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
  check_rank("global_pool", x, 4, 4);
  const VarId y = program_.temporary(hint("global_pool.out"));
  program_.append(section_, "pool2d", {x}, {y}, {{"type", std::string("avg")}, {"global", true}});
  return y;
}

VarId Network::flatten(VarId x) { return emit("flatten", {x}, {}, "flatten"); }

VarId Network::linear(const std::string& name, VarId x, const Linear& layer) {
  claim(name);
  check_rank("linear '" + name + "'", x, 2, Shape::kMaxRank);
  check_number("linear '" + name + "'", "features", layer.features);
  const int64_t last = shape(x).rank() - 1;
  const Shape weight = {layer.features, shape(x)[static_cast<int>(last)]};
  std::vector<VarId> inputs = {
      x, parameter(name + ".weight", weight, weight_init(layer.init, weight))};
  if (layer.bias) {
    inputs.push_back(parameter(name + ".bias", {layer.features}, bias_init(layer.init, weight)));
  }
  return emit("fc", inputs, {{"axis", last}}, name);
}

std::pair<VarId, VarId> Network::row_parameters(const std::string& name, VarId x) {
  const Shape row = {shape(x)[shape(x).rank() - 1]};
  return {parameter(name + ".weight", row, init::constant(1)),
          parameter(name + ".bias", row, init::constant(0))};
}

// Outputs for the statistics that the gradient of a normalization over rows reads.
void Network::append_statistics(const std::string& base, std::vector<VarId>* outputs) {
  if (!training_) return;
  outputs->push_back(program_.temporary(base + ".saved_mean"));
  outputs->push_back(program_.temporary(base + ".saved_variance"));
}

VarId Network::layer_norm(const std::string& name, VarId x, const LayerNorm& layer) {
  claim(name);
  check_rank("layer_norm '" + name + "'", x, 2, Shape::kMaxRank);
  const int64_t last = shape(x).rank() - 1;
  const auto [scale, bias] = row_parameters(name, x);
  const std::string base = hint(name);
  std::vector<VarId> outputs = {program_.temporary(base + ".out")};
  append_statistics(base, &outputs);
  program_.append(section_, "layer_norm", {x, scale, bias}, outputs,
                  {{"epsilon", layer.epsilon}, {"begin_norm_axis", last}});
  return outputs[0];
}

VarId Network::table(const std::string& name, VarId ids, const Table& table) {
  claim(name);
  check_number("table '" + name + "'", "rows", table.rows);
  check_number("table '" + name + "'", "dim", table.dim);
  const VarId weight =
      parameter(name + ".weight", {table.rows, table.dim}, init::uniform(table.bound));
  return emit("embedding", {ids, weight},
              {{"pooled", true}, {"sparse", table.sparse}, {kTable, name}}, name);
}

std::pair<VarId, VarId> Network::add_layer_norm(const std::string& name, VarId x, VarId residual,
                                                const LayerNorm& layer) {
  claim(name);
  check_rank("add_layer_norm '" + name + "'", x, 2, Shape::kMaxRank);
  const auto [scale, bias] = row_parameters(name, x);
  const std::string base = hint(name);
  std::vector<VarId> outputs = {program_.temporary(base + ".out"),
                                program_.temporary(base + ".sum")};
  append_statistics(base, &outputs);
  program_.append(section_, "add_layer_norm", {x, residual, scale, bias}, outputs,
                  {{"epsilon", layer.epsilon}});
  return {outputs[0], outputs[1]};
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

std::vector<VarId> Network::apply_all(const std::string& type, std::vector<VarId> inputs,
                                      Attributes attributes) {
  return emit_all(type, std::move(inputs), std::move(attributes), type);
}

VarId Network::scale_channels(VarId x, VarId gate) {
  return emit("elementwise_mul", {x, gate}, {{"axis", int64_t{0}}}, "scale_channels");
}

VarId Network::squeeze_excitation(const std::string& name, VarId x, int64_t squeezed,
                                  const std::string& inner, const std::string& outer) {
  check_rank("squeeze_excitation '" + name + "'", x, 4, 4);
  const int64_t channels = shape(x)[1];
  VarId gate =
      conv2d(name + ".fc1", global_pool(x), {.channels = squeezed, .kernel = 1, .bias = true});
  gate = conv2d(name + ".fc2", activation(inner, gate),
                {.channels = channels, .kernel = 1, .bias = true});
  return scale_channels(x, activation(outer, gate));
}

VarId Network::drop_path(VarId x, double p) {
  if (p == 0 || !training_) return x;
  check_rank("drop_path", x, 1, Shape::kMaxRank);
  return drop(x, p, /*samples=*/true, "drop_path");
}

VarId Network::dropout(VarId x, double p) {
  if (p == 0 || !training_) return x;
  return drop(x, p, /*samples=*/false, "dropout");
}

VarId Network::drop(VarId x, double p, bool samples, const std::string& name) {
  if (sample_key_ == kNoVar) {
    refuse(name, "the network has no sample keys", "give Network the feed of the keys");
  }
  return emit("dropout", {x, sample_key_},
              {{"p", p}, {"salt", dropouts_++}, {"whole_samples", samples}}, name);
}

VarId Network::block(const std::string& name, VarId x) {
  for (const Block& block : blocks_) {
    if (block.name == name) refuse("block '" + name + "'", "is there twice", "give each a name");
  }
  shape(x);
  blocks_.push_back({name, x});
  return x;
}

VarId Network::tail_of_block(VarId x) {
  if (!blocks_.empty()) blocks_.back().tail = x;
  return x;
}

void Network::join_next_block() {
  if (!blocks_.empty()) blocks_.back().joins_next = true;
}

VarId Network::without_weight_decay(VarId parameter) {
  program_.var(parameter).no_weight_decay = true;
  return parameter;
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
  if (layers_.insert(layer).second) return;
  refuse("layer '" + layer + "'", "is there twice",
         "give each layer a name of its own; parameter() lets two operations share a parameter");
}

VarId Network::find(const std::string& name, VarKind kind, const Shape& shape) const {
  const VarId id = program_.find(name);
  if (id == kNoVar) return kNoVar;
  const Var& var = program_.var(id);
  if (var.kind != kind) {
    refuse("'" + name + "'", "is the name of another variable of the network", "use another name");
  }
  if (var.shape != shape) {
    refuse("'" + name + "'", "is " + var.shape.text() + " already, not " + shape.text(),
           "use another name, or the same size in training and in evaluation");
  }
  return id;
}

const Shape& Network::shape(VarId var) const {
  if (var < 0 || var >= program_.var_count()) {
    refuse("network", "there is no variable " + std::to_string(var),
           "use the image or the result of a layer of this network");
  }
  return program_.var(var).shape;
}

void Network::check_rank(const std::string& where, VarId x, int least, int most) const {
  const Shape& of = shape(x);
  if (const DType dtype = program_.var(x).dtype; !is_floating(dtype)) {
    refuse(where, std::string("x is ") + name_of(dtype), "use the operation cast: to float32");
  }
  if (of.rank() >= least && of.rank() <= most) return;
  const std::string wanted =
      std::to_string(least) + (most == least             ? ""
                               : most == Shape::kMaxRank ? " or more"
                                                         : " to " + std::to_string(most));
  refuse(where, "x is " + of.text(),
         "it needs " + wanted + " dimensions: samples come first" +
             (most == 4 ? ", then channels" : ""));
}

// Slots that do not fit, and tensors of different types, which kernels would misread.
void Network::check_inputs(const OpDef& def, const std::string& where,
                           const std::vector<VarId>& inputs) const {
  const auto wrong = [&](const std::string& what) {
    refuse(where, what, def.type + " takes " + text_of_slots(def.inputs));
  };
  if (inputs.size() > def.inputs.size() && !def.has_variadic_inputs()) {
    wrong(std::to_string(inputs.size()) + " inputs are given");
  }
  for (size_t i = 0; i < def.inputs.size(); ++i) {
    const bool given = i < inputs.size() && inputs[i] != kNoVar;
    if (!given && def.inputs[i].kind != Slot::kOptional) {
      wrong("the input '" + def.inputs[i].name + "' is missing");
    }
  }
  const bool computes = def.find_trait<Elementwise>() || def.find_trait<Arithmetic>();
  std::optional<DType> common;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == kNoVar) continue;
    shape(inputs[i]);  // checks it
    const DType dtype = program_.var(inputs[i]).dtype;
    const bool integer = i < def.inputs.size() && def.inputs[i].integer;
    if ((!computes || integer) && !is_floating(dtype)) continue;
    const bool fixed = stays_float32(def, static_cast<int>(i));
    const DType wanted = fixed ? DType::kFloat32 : common.value_or(dtype);
    if (!fixed) common = wanted;
    if (dtype == wanted) continue;
    refuse(where, std::string("its inputs are ") + name_of(wanted) + " and " + name_of(dtype),
           "use the operation cast to make them of one type");
  }
}

std::string Network::hint(const std::string& name) const {
  return training_ ? name : "evaluate/" + name;
}

std::vector<VarId> Network::emit_all(const std::string& type, std::vector<VarId> inputs,
                                     Attributes attributes, const std::string& name) {
  const OpDef& def = op_registry().get(type);
  const std::string where = name == type ? type : type + " '" + name + "'";
  // Collectives and updates change variables in place, which strategies and optimizers arrange.
  const bool makes_value = !def.outputs.empty() && def.outputs[0].kind == Slot::kRequired;
  if (!makes_value || def.attributes.contains("communicator")) {
    refuse(where, "it is not an operation for networks",
           "strategies and optimizers append it where they need it");
  }
  check_inputs(def, where, inputs);
  std::vector<VarId> outputs =
      program_.emit(section_, type, std::move(inputs), std::move(attributes), hint(name));
  if (!program_.var(outputs[0]).shape_known) {
    refuse(where, "its FLEET_OP sets no shape", "set it in def.infer: context.set(0, shape, type)");
  }
  return outputs;
}

}  // namespace fleet
