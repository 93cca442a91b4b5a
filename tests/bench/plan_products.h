// The bound of a training step on a CPU: the convolutions, matrix products and batch norms of its
// Plan alone. Convolutions have the layouts that oneDNN prefers for each of them, without the
// reorders between them; the others are the Plan's own kernels. They run in the Plan's order on
// memory of their own, placed as the Plan's, so that caches see the same traffic.
#pragma once

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/cpu/convolution.h"
#include "backend/cpu/device.h"
#include "exec/plan.h"

namespace fleet::bench {

// Treats denormals as zero on all threads: without the operations between products, results shrink
// until they are denormal, which a step's are not and which takes a hundred times as long.
class DenormalsAsZero {
 public:
#if defined(__SSE2__)
  DenormalsAsZero() { set(before_ | 0x8040); }
  ~DenormalsAsZero() { set(before_); }

 private:
  static void set(unsigned control) {
#pragma omp parallel
    __builtin_ia32_ldmxcsr(control);
  }
  const unsigned before_ = __builtin_ia32_stmxcsr();
#endif
};

class PlanProducts {
 public:
  PlanProducts(const Plan& plan, Device& device) : plan_(plan), device_(device) {
    std::vector<bool> active;
    for (const Section& section : plan.program.sections()) {
      active.push_back(section.when.holds({.step = 3}));
    }
    const std::vector<ScheduledOp> schedule = plan.schedule(active);
    std::vector<const PlannedOp*> chosen;
    for (const ScheduledOp& scheduled : schedule) {
      const PlannedOp& op = plan.ops[scheduled.op];
      if (is_product(op.op.type())) chosen.push_back(&op);
    }
    size_t workspace = 0, largest = 0;
    for (const PlannedOp* op : chosen) {
      calls_.push_back(call_of(*op));
      workspace = std::max(workspace, calls_.back().workspace);
      for (const auto* arguments : {&calls_.back().inputs, &calls_.back().outputs}) {
        for (const Argument& argument : *arguments) largest = std::max(largest, argument.bytes());
      }
    }
    // A layout of oneDNN's may have more padding than the Plan's: room for the last one.
    persistent_bytes_ = plan.persistent_bytes + largest;
    arena_bytes_ = plan.arena_bytes + largest;
    persistent_ = device.allocate(persistent_bytes_);
    arena_ = device.allocate(arena_bytes_);
    workspace_ = device.allocate(workspace);
    fill();
    for (size_t i = 0; i < chosen.size(); ++i) create(*chosen[i], calls_[i]);
  }

  void run() {
    const DenormalsAsZero here;
    for (Call& call : calls_) call.kernel->run(*stream_);
  }

  // Neither zeros nor denormals: results of the last run may have become either. Not to be timed.
  void fill() {
    std::memset(persistent_.data(), 0x3c, persistent_bytes_);  // floats of 0.0115
    std::memset(arena_.data(), 0x3c, arena_bytes_);
  }

  size_t count() const { return calls_.size(); }

 private:
  struct Call {
    std::vector<Argument> inputs, outputs;
    size_t workspace = 0;
    std::optional<cpu::Convolution> convolution = {};  // created by its layouts, not by the Plan
    std::unique_ptr<Kernel> kernel = {};
  };

  static bool is_product(const std::string& type) {
    static const std::set<std::string> types = {
        "conv2d",     "conv2d_data_grad", "conv2d_weight_grad",
        "fc",         "fc_data_grad",     "fc_weight_grad",
        "matmul",     "attention",        "attention_grad",
        "batch_norm", "batch_norm_grad",  "batch_norm_activation_grad"};
    return types.contains(type);
  }

  Argument argument_of(VarId id, const Layout& layout) const {
    if (id == kNoVar) return {};
    const Var& var = plan_.program.var(id);
    return {.data = nullptr, .dtype = var.dtype, .shape = var.shape, .layout = layout};
  }

  Call call_of(const PlannedOp& planned) const {
    Call call{.workspace = planned.workspace};
    const Op& op = planned.op;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      call.inputs.push_back(argument_of(op.inputs[i], planned.input_layouts[i]));
    }
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      call.outputs.push_back(argument_of(op.outputs[i], planned.output_layouts[i]));
    }
    using enum cpu::Convolution::Direction;
    if (op.type() == "conv2d") {
      prefer(op, kForward, call, call.inputs[0], call.inputs[1], call.outputs[0]);
    } else if (op.type() == "conv2d_data_grad") {
      prefer(op, kData, call, call.outputs[0], call.inputs[0], call.inputs[1]);
    } else if (op.type() == "conv2d_weight_grad" && op.outputs[0] != kNoVar) {
      prefer(op, kWeight, call, call.inputs[0], call.outputs[0], call.inputs[1]);
    }
    return call;
  }

  // Gives a convolution oneDNN's layouts, unless the kernel is our own or oneDNN has none.
  void prefer(const Op& op, cpu::Convolution::Direction direction, Call& call, Argument& x,
              Argument& weight, Argument& y) const {
    if (!op.attributes.text("input_activation").empty()) return;
    cpu::Convolution conv = cpu::convolution_of(direction, op.attributes, x, weight, y);
    if (op.attributes.boolean("winograd")) {
      conv.winograd_memory =
          static_cast<size_t>(cpu::options_of(&device_).conv_workspace_size_limit) << 20;
    }
    if (direction == cpu::Convolution::kForward && op.inputs.size() > 2 && op.inputs[2] != kNoVar) {
      conv.bias = call.inputs[2].dtype;
    }
    if (direction == cpu::Convolution::kWeight && op.outputs.size() > 1 &&
        op.outputs[1] != kNoVar) {
      conv.bias = call.outputs[1].dtype;
    }
    if (direction == cpu::Convolution::kWeight && cpu::DepthwiseWeight::is_for(conv)) return;
    const cpu::ConvolutionChoice choice = cpu::choose(conv, {cpu::ConvolutionLayouts()});
    if (choice.slow) return;
    x.layout = choice.x;
    weight.layout = choice.weight;
    y.layout = choice.y;
    call.workspace = choice.workspace;
    call.convolution = conv;
  }

  void place(const std::vector<VarId>& ids, std::vector<Argument>& arguments) const {
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] == kNoVar) continue;
      const PlannedVar& var = plan_.vars[ids[i]];
      const Buffer& buffer = var.region == Region::kPersistent ? persistent_ : arena_;
      // Buckets have an order of their own; without other ranks there are none worth placing.
      const size_t offset = var.region == Region::kBucket ? 0 : var.offset;
      arguments[i].data = static_cast<char*>(buffer.data()) + offset;
    }
  }

  void create(const PlannedOp& planned, Call& call) {
    const Op& op = planned.op;
    place(op.inputs, call.inputs);
    place(op.outputs, call.outputs);
    if (call.convolution) return create_convolution(op.type(), call);
    KernelContext context{.op = op,
                          .inputs = call.inputs,
                          .outputs = call.outputs,
                          .workspace = workspace_.data(),
                          .device = device_};
    call.kernel = planned.kernel->create(context);
  }

  void create_convolution(const std::string& type, Call& call) {
    const auto at = [](const std::vector<Argument>& arguments, size_t i) {
      return i < arguments.size() ? arguments[i] : Argument();
    };
    const std::vector<Argument>&in = call.inputs, &out = call.outputs;
    const auto make = [&](const Argument& x, const Argument& weight, const Argument& bias,
                          const Argument& y) {
      call.kernel = cpu::make_convolution(*call.convolution, x, weight, bias, y, workspace_.data());
    };
    if (type == "conv2d") return make(in[0], in[1], at(in, 2), out[0]);
    if (type == "conv2d_data_grad") return make(out[0], in[0], {}, in[1]);
    make(in[0], out[0], at(out, 1), in[1]);
  }

  const Plan& plan_;
  Device& device_;
  std::unique_ptr<Stream> stream_ = device_.make_stream("");
  std::vector<Call> calls_;
  size_t persistent_bytes_ = 0, arena_bytes_ = 0;
  Buffer persistent_, arena_, workspace_;
};

}  // namespace fleet::bench
