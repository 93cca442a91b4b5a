// Builds networks from named layers, each consisting of a few operations and their parameters.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/program.h"

namespace fleet {

// Initial values of weights. Formulas: He et al. 2015 (kaiming), with PyTorch's gains and defaults.
namespace init {
Init constant(double value);
Init uniform(double bound);  // [-bound, bound)
Init normal(double deviation);
// Normal with standard deviation sqrt(2 / fan_out), as in torchvision's networks with ReLU; the fan
// out of a convolution is out_channels * kernel height * kernel width, without dividing by groups.
Init kaiming_normal_fan_out(const Shape& weight);
// Normal with standard deviation sqrt(2 / fan_in).
Init kaiming_normal_fan_in(const Shape& weight);
// Uniform in +-1 / sqrt(fan_in): the distribution of weight and bias in PyTorch's Conv2d and
// Linear.
Init torch_default(const Shape& weight);
}  // namespace init

// The initial values of a layer's weight and bias.
enum class WeightInit {
  kTorchDefault,         // weight and bias uniform in +-1 / sqrt(fan_in)
  kTorchDefaultNoBias,   // weight uniform in +-1 / sqrt(fan_in); bias 0
  kKaimingNormalFanOut,  // weight; bias 0
  kKaimingNormalFanIn,   // weight; bias 0
  kNormal001,            // weight normal with standard deviation 0.01; bias 0
  kNormal002,            // weight normal with standard deviation 0.02; bias 0
  kZero,                 // weight and bias 0
  kUniformFanOut,        // weight uniform in +-1 / sqrt(features out); bias 0
};

struct Conv2d {
  int64_t channels = 0;  // out
  int64_t kernel = 3;
  int64_t stride = 1;
  int64_t padding = 0;
  // TensorFlow's SAME instead of `padding`: ceil(size / stride) outputs, and of an odd padding the
  // larger half behind the image.
  bool same_padding = false;
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = false;
  WeightInit init = WeightInit::kKaimingNormalFanOut;
};

struct Pool2d {
  std::string type = "max";  // or "avg"
  int64_t kernel = 2;
  int64_t stride = 2;
  int64_t padding = 0;
  bool ceil_mode = false;
};

struct Linear {
  int64_t features = 0;  // out
  bool bias = true;
  WeightInit init = WeightInit::kTorchDefault;
};

struct BatchNorm {
  double scale = 1;  // initial value
  double epsilon = 1e-5;
  double momentum = 0.1;  // running statistics, as in PyTorch: new = 0.9 * old + 0.1 * batch
};

struct LayerNorm {
  double epsilon = 1e-5;
};

// Rows that are looked up by id, such as those of the categories of clicks.
struct Table {
  int64_t rows = 0, dim = 0;
  double bound = 0.01;  // initial values are uniform in [-bound, bound)
  bool sparse = true;   // a step exchanges and updates only the rows that it reads
};

// Builds a network once into one section of a Program. A network is built once for training and
// once for evaluation; the second build finds the parameters and states of the first by name.
// Layers are named like torchvision's modules: "layer1.0.conv1" makes "layer1.0.conv1.weight".
// All functions throw kUsage naming the layer or operation if it cannot be: a name that is used
// twice in one build or with another shape in the second, an input of the wrong rank, size or type,
// an unknown attribute.
class Network {
 public:
  // sample_key: int64 [N], the key for dropout of each sample; may be kNoVar if the network has no
  // dropout.
  Network(Program& program, SectionId section, bool training, VarId sample_key);

  Program& program() { return program_; }
  bool training() const { return training_; }
  VarId sample_key() const { return sample_key_; }
  // The model's outputs that something reads. A parameter in front of another output would have no
  // gradient, so models with several heads build those that are wanted. Initially none.
  void set_wanted_outputs(std::set<std::string> names) { wanted_ = std::move(names); }
  bool wants(const std::string& output) const { return wanted_.contains(output); }
  // Of every batch_norm from here on, whatever its layer says: weights belong to the epsilon that
  // they were trained with. 0: the layers' own.
  void set_batch_norm_epsilon(double epsilon) { batch_norm_epsilon_ = epsilon; }
  const Shape& shape(VarId var) const;  // kUsage if there is no such variable

  // Images are N, C, H, W.
  VarId conv2d(const std::string& name, VarId x, const Conv2d& layer);
  VarId batch_norm(const std::string& name, VarId x, const BatchNorm& layer = {});
  VarId pool(VarId x, const Pool2d& layer);
  VarId global_pool(VarId x);  // the mean of each channel: N, C, 1, 1
  VarId flatten(VarId x);      // N, everything else
  // Acts on the last dimension.
  VarId linear(const std::string& name, VarId x, const Linear& layer);
  // Over the last dimension; scale and bias start as 1 and 0.
  VarId layer_norm(const std::string& name, VarId x, const LayerNorm& layer = {});
  // The table's rows by ids, int64 [N, K, L]: the sum of each list, [N, K, dim]. An id of -1 is
  // none. The parameter NAME.weight [rows, dim] has this reader only.
  VarId table(const std::string& name, VarId ids, const Table& table);
  // layer_norm of x + residual, and that sum.
  std::pair<VarId, VarId> add_layer_norm(const std::string& name, VarId x, VarId residual,
                                         const LayerNorm& layer = {});
  // "relu", "relu6", "sigmoid", "tanh", "gelu", "hardswish", "hardsigmoid", "silu"
  VarId activation(const std::string& type, VarId x);
  VarId relu(VarId x) { return activation("relu", x); }
  VarId add(VarId a, VarId b);
  VarId concat(const std::vector<VarId>& parts);  // along channels
  // Axis d of the result is axis perm[d] of x.
  VarId transpose(VarId x, const std::vector<int64_t>& perm);
  // 0 keeps x's dimension at this position; one -1 takes the rest.
  VarId reshape(VarId x, const std::vector<int64_t>& shape);
  // Appends any operation, by its type; returns its first output. docs/reference/operations.md has
  // the operations and their attributes.
  VarId apply(const std::string& type, std::vector<VarId> inputs, Attributes attributes = {});
  // The same; returns all of its outputs.
  std::vector<VarId> apply_all(const std::string& type, std::vector<VarId> inputs,
                               Attributes attributes = {});
  // Multiplies each channel of each sample by a value: gate is N, C, 1, 1.
  VarId scale_channels(VarId x, VarId gate);
  // Squeeze and excitation (Hu et al. 2017), torchvision's names: multiplies x by a gate computed
  // from the means of its channels, by NAME.fc1, `inner`, NAME.fc2 and `outer`. squeezed: channels
  // in between.
  VarId squeeze_excitation(const std::string& name, VarId x, int64_t squeezed,
                           const std::string& inner, const std::string& outer);
  // Stochastic depth (Huang et al. 2016, torchvision's mode "row"): sets whole samples of x to zero
  // with probability p and scales the others by 1 / (1 - p). Counts as a dropout.
  VarId drop_path(VarId x, double p);
  // Dropouts are numbered in the order of these calls. Adds nothing if p = 0 or in evaluation.
  VarId dropout(VarId x, double p);

  // Layers from here on are on this device ("gpu:1"), as with Paddle's device_guard: a strategy may
  // make each device a stage of a pipeline.
  void device(const std::string& name);
  // The devices in this order, each with the value before it.
  const std::vector<Block>& devices() const { return devices_; }

  // Ends a block with output x. Strategies may cut the network here. Returns x.
  VarId block(const std::string& name, VarId x);
  // For optimizer.layer_decay, which groups layers as timm does: what follows the last block, up to
  // x, belongs to it. Returns x.
  VarId tail_of_block(VarId x);
  // The same: the last block, a step between stages, belongs to the next one.
  void join_next_block();
  const std::vector<Block>& blocks() const { return blocks_; }

  // The parameter or state of this name, created in the first build. Two layers of one build may
  // share a parameter by requesting it here.
  VarId parameter(const std::string& name, const Shape& shape, Init init);
  VarId state(const std::string& name, const Shape& shape, Init init);
  // optimizer.weight_decay_exclude_1d leaves this parameter out although it has more than one
  // dimension: a token, a table of positions, a scale of channels. Returns it.
  VarId without_weight_decay(VarId parameter);

 private:
  void claim(const std::string& layer);
  void check_rank(const std::string& where, VarId x, int least, int most) const;
  void check_inputs(const OpDef& def, const std::string& where,
                    const std::vector<VarId>& inputs) const;
  VarId find(const std::string& name, VarKind kind, const Shape& shape) const;
  std::pair<VarId, VarId> row_parameters(const std::string& name, VarId x);
  void append_statistics(const std::string& base, std::vector<VarId>* outputs);
  VarId drop(VarId x, double p, bool samples, const std::string& name);
  // In evaluation, prefixes names with "evaluate/", so that a printed program is readable.
  std::string hint(const std::string& name) const;
  std::vector<VarId> emit_all(const std::string& type, std::vector<VarId> inputs,
                              Attributes attributes, const std::string& name);
  VarId emit(const std::string& type, std::vector<VarId> inputs, Attributes attributes,
             const std::string& name) {
    return emit_all(type, std::move(inputs), std::move(attributes), name)[0];
  }

  Program& program_;
  SectionId section_;
  bool training_;
  double batch_norm_epsilon_ = 0;
  VarId sample_key_;
  int64_t dropouts_ = 0;
  std::set<std::string> layers_, wanted_;
  std::vector<Block> blocks_, devices_;
};

// Channels of scaled networks: the multiple of `divisor` nearest to `channels`, but at least 0.9 x
// channels and at least `divisor` (torchvision's _make_divisible).
inline int64_t round_channels(double channels, int64_t divisor = 8) {
  const auto half = static_cast<double>(divisor) / 2;
  const int64_t nearest = static_cast<int64_t>(channels + half) / divisor * divisor;
  const int64_t rounded = std::max(divisor, nearest);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + divisor : rounded;
}

}  // namespace fleet
