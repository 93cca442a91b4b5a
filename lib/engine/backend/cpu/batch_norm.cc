#include <algorithm>
#include <cmath>

#include "backend/cpu/channels.h"
#include "backend/cpu/dnnl_glue.h"
#include "backend/cpu/norm_loops.h"

namespace fleet {
namespace {

using cpu::PrimitiveKernel;
using cpu::norm_runs::Recomputed;
using dnnl::memory;
using dnnl::normalization_flags;

struct BatchNorm {
  Shape x;
  DType dtype;
  double epsilon;
  bool is_test, relu, mask;
  Recomputed activation;

  normalization_flags flags() const {
    normalization_flags flags = normalization_flags::use_scale | normalization_flags::use_shift;
    if (is_test) flags |= normalization_flags::use_global_stats;
    if (relu) flags |= normalization_flags::fuse_norm_relu;
    return flags;
  }
  // Training's forward pass produces the mask, even with given statistics.
  dnnl::prop_kind kind() const {
    return is_test && !(relu && mask) ? dnnl::prop_kind::forward_inference
                                      : dnnl::prop_kind::forward_training;
  }
};

BatchNorm norm_of(const Attributes& attributes, const Shape& x, DType dtype, bool mask) {
  return {.x = x,
          .dtype = dtype,
          .epsilon = attributes.number("epsilon"),
          .is_test = attributes.boolean("is_test"),
          .relu = attributes.text("activation") == "relu",
          .mask = mask,
          .activation = cpu::norm_runs::recomputed_of(attributes.text("activation"))};
}

// The same tensor with four dimensions.
Argument as_image(const Argument& x) {
  const int rank = x.shape.rank();
  if (rank == 4) return x;
  const Shape& padded = x.layout.padded();
  const std::vector<int64_t>& s = x.layout.strides();
  const int64_t length = rank == 3 ? x.shape[2] : 1, step = rank == 3 ? s[2] : 1;
  Argument image = x;
  image.shape = {x.shape[0], x.shape[1], 1, length};
  image.layout = Layout::blocked({padded[0], padded[1], 1, rank == 3 ? padded[2] : 1},
                                 {s[0], s[1], step * length, step}, x.layout.inner());
  return image;
}

// oneDNN is fast for images only, so [N, C, L] is treated as an image of height 1.
memory::desc image_desc(const BatchNorm& norm, const Layout& layout) {
  const Argument x{.dtype = norm.dtype, .shape = norm.x, .layout = layout};
  return cpu::desc_of(norm.x.rank() == 3 ? as_image(x) : x);
}

using Forward = dnnl::batch_normalization_forward;
using Backward = dnnl::batch_normalization_backward;

Forward::primitive_desc forward(const BatchNorm& norm, const Layout& layout) {
  const Forward::desc desc(norm.kind(), image_desc(norm, layout), static_cast<float>(norm.epsilon),
                           norm.flags());
  return {desc, cpu::user_scratchpad(), cpu::engine()};
}

Backward::primitive_desc backward(const BatchNorm& norm, const Layout& layout) {
  const memory::desc image = image_desc(norm, layout);
  const Backward::desc desc(dnnl::prop_kind::backward, image, image,
                            static_cast<float>(norm.epsilon), norm.flags());
  return {desc, cpu::user_scratchpad(), cpu::engine(), forward(norm, layout)};
}

// Whether our own loops are faster than oneDNN's, which do not use vectors for plain layouts: by
// ten times. Decided by x alone, so that both directions agree.
bool uses_loops(const Shape& x, const Layout& layout) {
  if (cpu::is_channels_last(layout, x)) return true;
  constexpr int64_t kMinPixels = 16;  // per image: shorter runs of a channel fill no vector
  return layout == Layout::plain(x) && x.elements() >= kMinPixels * x[0] * x[1];
}

// oneDNN has no activation but relu.
bool uses_loops(const BatchNorm& norm, const Layout& layout) {
  return norm.activation != Recomputed::kNone || uses_loops(norm.x, layout);
}

// Loops of oneDNN without vectors: its reference, and those for other channels last than it has
// vectors for.
bool is_slow(const dnnl::primitive_desc_base& desc) {
  return cpu::is_reference(desc) || cpu::implementation_of(desc).starts_with("nspc");
}

// The layout of x, unless oneDNN would be slow for it.
Layout fast_layout(const BatchNorm& norm, const std::optional<Layout>& now) {
  const Layout plain = Layout::plain(norm.x);
  if (!now || now->is_opaque() || now->padded().rank() != norm.x.rank()) return plain;
  if (norm.x.rank() == 3 && !now->inner().empty()) return plain;
  if (uses_loops(norm.x, *now)) return *now;
  const bool trains = norm.kind() == dnnl::prop_kind::forward_training;
  const bool slow = is_slow(forward(norm, *now)) || (trains && is_slow(backward(norm, *now)));
  return slow ? plain : *now;
}

constexpr char kMask[] = "batch_norm_mask";

// Without an activation the mask is empty, but has memory.
Layout no_mask() { return Layout::opaque(1, kMask); }

void forward_layouts(LayoutQuery& query) {
  const Var& x = query.input_var(0);
  const BatchNorm norm = norm_of(query.attributes(), x.shape, x.dtype, query.has_output(5));
  cpu::translated("batch_norm of " + x.shape.text(), [&] {
    const Layout layout = norm.activation == Recomputed::kNone ? fast_layout(norm, query.input(0))
                                                               : cpu::channel_run_layout(query);
    query.need(0, layout);
    query.give(0, layout);
    if (uses_loops(norm, layout)) {
      if (norm.mask) {
        query.give(5, norm.relu ? cpu::norm_mask(x.shape, layout) : no_mask());
      }
      return query.workspace(cpu::norm_workspace(x.shape, layout));
    }
    const Forward::primitive_desc desc = forward(norm, layout);
    const int64_t mask = static_cast<int64_t>(desc.workspace_desc().get_size());
    if (norm.mask) query.give(5, mask > 0 ? Layout::opaque(mask, kMask) : no_mask());
    // Unused statistics are still computed, into the memory after the scratchpad.
    query.workspace(cpu::SpareOutputs::bytes(desc, {x.shape[1], x.shape[1]}, sizeof(float)));
  });
}

void backward_layouts(LayoutQuery& query) {
  const Var& x = query.input_var(0);
  const BatchNorm norm = norm_of(query.attributes(), x.shape, x.dtype, query.has_input(4));
  cpu::translated("batch_norm_grad of " + x.shape.text(), [&] {
    const Layout layout = fast_layout(norm, query.input(0));
    query.need(0, layout);
    query.need(5, layout);
    query.give(0, layout);
    if (query.has_input(4)) query.need(4, *query.input(4));
    if (uses_loops(x.shape, layout)) {
      return query.workspace(cpu::norm_workspace(x.shape, layout));
    }
    const Backward::primitive_desc desc = backward(norm, layout);
    const int64_t unused = query.has_output(0) ? 0 : layout.elements();  // dx is not needed
    query.workspace(
        cpu::SpareOutputs::bytes(desc, {x.shape[1], x.shape[1], unused}, sizeof(float)));
  });
}

// Computes y and the batch's statistics, then updates the running ones.
class BatchNormKernel : public PrimitiveKernel {
 public:
  BatchNormKernel(const Forward::primitive_desc& desc, KernelContext& context)
      : PrimitiveKernel(desc, context.workspace) {
    const Argument& x = context.inputs[0];
    channels_ = x.shape[1];
    values_ = x.shape.elements() / channels_;
    momentum_ = context.attributes().number("momentum");
    is_test_ = context.attributes().boolean("is_test");
    relu_ = !context.attributes().text("activation").empty();
    y_ = as_image(context.outputs[0]);
    scale_ = context.inputs[1].as<float>();
    bias_ = context.inputs[2].as<float>();
    mean_ = context.inputs[3].as<float>();
    variance_ = context.inputs[4].as<float>();
    mean_out_ = context.outputs[1].as<float>();
    variance_out_ = context.outputs[2].as<float>();
    saved_mean_ = context.outputs[3].as<float>();
    saved_variance_ = context.outputs[4].as<float>();
    cpu::SpareOutputs spare(desc, context.workspace);
    if (!is_test_ && !saved_mean_) saved_mean_ = spare.take<float>(channels_);
    if (!is_test_ && !saved_variance_) saved_variance_ = spare.take<float>(channels_);
    bind(DNNL_ARG_SRC, x.data);
    bind(DNNL_ARG_SCALE, context.inputs[1].data);
    bind(DNNL_ARG_SHIFT, context.inputs[2].data);
    bind(DNNL_ARG_MEAN, is_test_ ? const_cast<float*>(mean_) : saved_mean_);
    bind(DNNL_ARG_VARIANCE, is_test_ ? const_cast<float*>(variance_) : saved_variance_);
    bind(DNNL_ARG_DST, context.outputs[0].data);
    if (desc.workspace_desc().get_size() > 0) {
      FLEET_CHECK(context.outputs[5], "batch_norm that learns needs mask for its activation");
      bind(DNNL_ARG_WORKSPACE, context.outputs[5].data);
    }
  }

  void run(Stream&) override {
    execute();
    if (is_test_) return copy_statistics();
    update_statistics();
    if (relu_) pass_nan_on();
  }

 private:
  bool has_statistics(int64_t c) const {
    return std::isfinite(saved_mean_[c]) && std::isfinite(saved_variance_[c]);
  }

  void update_statistics() {
    const float keep = static_cast<float>(1 - momentum_), add = static_cast<float>(momentum_);
    const float add_unbiased = static_cast<float>(momentum_ * values_ / (values_ - 1));
    for (int64_t c = 0; c < channels_ && mean_out_; ++c) {
      mean_out_[c] = has_statistics(c) ? keep * mean_[c] + add * saved_mean_[c] : mean_[c];
    }
    for (int64_t c = 0; c < channels_ && variance_out_; ++c) {
      variance_out_[c] = has_statistics(c) ? keep * variance_[c] + add_unbiased * saved_variance_[c]
                                           : variance_[c];
    }
  }

  // oneDNN's relu turns NaN into 0. A NaN in x or in one of its factors makes all values of its
  // channel NaN: adding the channel's mean to each value propagates it.
  void pass_nan_on() {
    bool any = false;
    offset_.resize(channels_);
    for (int64_t c = 0; c < channels_; ++c) {
      const float value = saved_mean_[c] * saved_variance_[c] * scale_[c] + bias_[c];
      offset_[c] = std::isnan(value) ? value : 0;
      any = any || std::isnan(value);
    }
    if (!any) return;
    cpu::Channels(y_).add({.data = offset_.data(),
                           .dtype = DType::kFloat32,
                           .shape = {channels_},
                           .layout = Layout::plain({channels_})});
  }

  // Only if the statistics are needed in other variables.
  void copy_statistics() {
    const auto copy = [this](float* to, const float* from) {
      if (to && to != from) std::copy_n(from, channels_, to);
    };
    copy(mean_out_, mean_);
    copy(variance_out_, variance_);
    copy(saved_mean_, mean_);
    copy(saved_variance_, variance_);
  }

  int64_t channels_, values_;
  double momentum_;
  bool is_test_, relu_;
  Argument y_;
  std::vector<float> offset_;  // per channel
  const float *mean_, *variance_, *scale_, *bias_;
  float *mean_out_, *variance_out_, *saved_mean_, *saved_variance_;
};

std::unique_ptr<Kernel> forward_loops(const BatchNorm& norm, const KernelContext& context) {
  const std::vector<Argument>&in = context.inputs, &out = context.outputs;
  return cpu::norm_forward_kernel({.x = in[0],
                                   .scale = in[1].as<float>(),
                                   .bias = in[2].as<float>(),
                                   .mean = in[3].as<float>(),
                                   .variance = in[4].as<float>(),
                                   .z = nullptr,
                                   .y = out[0].data,
                                   .mean_out = out[1].as<float>(),
                                   .variance_out = out[2].as<float>(),
                                   .saved_mean = out[3].as<float>(),
                                   .saved_variance = out[4].as<float>(),
                                   .mask = norm.relu ? out[5].as<uint16_t>() : nullptr,
                                   .is_test = norm.is_test,
                                   .relu = norm.relu,
                                   .epsilon = norm.epsilon,
                                   .momentum = context.attributes().number("momentum"),
                                   .workspace = context.workspace,
                                   .activation = norm.activation});
}

std::unique_ptr<Kernel> backward_loops(const BatchNorm& norm, const KernelContext& context) {
  const std::vector<Argument>&in = context.inputs, &out = context.outputs;
  return cpu::norm_backward_kernel({.x = in[0],
                                    .scale = in[1].as<float>(),
                                    .mean = in[2].as<float>(),
                                    .variance = in[3].as<float>(),
                                    .mask = norm.relu ? in[4].as<uint16_t>() : nullptr,
                                    .dy = {in[5].data},
                                    .dx = out[0].data,
                                    .dz = nullptr,
                                    .dscale = out[1].as<float>(),
                                    .dbias = out[2].as<float>(),
                                    .is_test = norm.is_test,
                                    .epsilon = norm.epsilon,
                                    .workspace = context.workspace});
}

}  // namespace

FLEET_KERNEL(cpu, batch_norm) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = forward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument& x = context.inputs[0];
    const BatchNorm norm =
        norm_of(context.attributes(), x.shape, x.dtype, static_cast<bool>(context.outputs[5]));
    if (uses_loops(norm, x.layout)) return forward_loops(norm, context);
    return cpu::translated("batch_norm of " + x.shape.text(), [&] {
      return std::make_unique<BatchNormKernel>(forward(norm, x.layout), context);
    });
  };
}

FLEET_KERNEL(cpu, batch_norm_grad) {
  def.dtypes = cpu::kPrimitiveTypes;
  def.layouts = backward_layouts;
  def.create = [](KernelContext& context) -> std::unique_ptr<Kernel> {
    const Argument &x = context.inputs[0], &mask = context.inputs[4];
    const BatchNorm norm = norm_of(context.attributes(), x.shape, x.dtype, static_cast<bool>(mask));
    if (uses_loops(x.shape, x.layout)) return backward_loops(norm, context);
    return cpu::translated(
        "batch_norm_grad of " + x.shape.text(), [&]() -> std::unique_ptr<Kernel> {
          const Backward::primitive_desc desc = backward(norm, x.layout);
          auto kernel = std::make_unique<PrimitiveKernel>(desc, context.workspace);
          cpu::SpareOutputs spare(desc, context.workspace);
          const auto wanted = [&](const Argument& output, int64_t elements) -> void* {
            return output ? output.data : spare.take<float>(elements);
          };
          kernel->bind(DNNL_ARG_SRC, x.data);
          kernel->bind(DNNL_ARG_SCALE, context.inputs[1].data);
          // Required by the primitive but not read: no gradient depends on the bias.
          kernel->bind(DNNL_ARG_SHIFT, context.inputs[1].data);
          kernel->bind(DNNL_ARG_MEAN, context.inputs[2].data);
          kernel->bind(DNNL_ARG_VARIANCE, context.inputs[3].data);
          kernel->bind(DNNL_ARG_DIFF_DST, context.inputs[5].data);
          kernel->bind(DNNL_ARG_DIFF_SCALE, wanted(context.outputs[1], x.shape[1]));
          kernel->bind(DNNL_ARG_DIFF_SHIFT, wanted(context.outputs[2], x.shape[1]));
          kernel->bind(DNNL_ARG_DIFF_SRC, wanted(context.outputs[0], x.layout.elements()));
          if (norm.relu) kernel->bind(DNNL_ARG_WORKSPACE, mask.data);
          return kernel;
        });
  };
}

}  // namespace fleet
