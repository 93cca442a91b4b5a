// sync_batch_norm: training batch normalizations take mean and variance over the batches of all
// data-parallel ranks. Each is split where its sums are known (ops/batch_norm_sums.cc), and the
// ranks add them up: in the forward pass the sums of x and of its squares, in the backward pass
// those of dy and of dy times the normalized x, each pair in one message. Every rank then computes
// the same statistics, including running ones. The parameters' gradients stay local to the rank and
// are summed with the others.
//
// Runs after the fusions of the backward pass, including fuse_depthwise_norm, whose parts it
// completes, and before the sums of gradients.
//
// The sums run on stream 0, which has no other work until they arrive, over their own communicator:
// that of the gradients may be busy on another stream with a large bucket of an earlier layer.
// NCCL's operations wait on the GPU for those of other ranks, and NCCL guarantees progress only if
// all ranks run the operations of several communicators in one order. If one GPU ran the first
// operation while another rank's GPU ran the second, both would wait forever. So each of these sums
// starts after the preceding collective of the Program ("after_previous"), whatever its stream. A
// later allreduce of gradients reads values that stream 0 computes later, and so is ordered
// already.
#include <algorithm>

#include "base/log.h"
#include "passes/pass.h"
#include "passes/pipeline.h"

namespace fleet {
namespace {

bool trains(const Op& op, const char* suffix) {
  return (op.type() == std::string("batch_norm") + suffix ||
          op.type() == std::string("fused_bn_add_activation") + suffix) &&
         !op.attributes.boolean("is_test");
}

class SyncBatchNorm : public Pass {
 public:
  explicit SyncBatchNorm(const Attributes& options) : group_(options.integer("communicator")) {}

  bool run(Program& program, const PassContext& context) override {
    ranks_ = context.data_parallel_degree();
    if (ranks_ <= 1) return false;
    program_ = &program;
    std::vector<Op> old = std::move(program.ops());
    program.ops().clear();
    for (Op& op : old) {
      if (trains(op, "")) {
        cut(op);
      } else if (trains(op, "_grad")) {
        cut_gradient(op);
      } else if (op.type() == "batch_norm_finalize") {
        complete(std::move(op));
      } else if (op.type() == "batch_norm_data_grad") {
        complete_gradient(std::move(op));
      } else {
        program.ops().push_back(std::move(op));
      }
    }
    if (norms_ == 0) return false;
    spdlog::info("sync_batch_norm: {} batch normalizations take their statistics over {} ranks",
                 norms_, ranks_);
    return true;
  }

 private:
  VarId temporary(VarId like, const char* suffix) {
    return program_->temporary(program_->var(like).name + suffix);
  }

  void append(const Op& like, const std::string& type, std::vector<VarId> inputs,
              std::vector<VarId> outputs, Attributes attributes = {}) {
    program_->ops().push_back(program_->make_op(like.section, type, std::move(inputs),
                                                std::move(outputs), std::move(attributes)));
    copy_stage(like, program_->ops().back());
  }

  void add_up(const Op& like, VarId first, VarId second) {
    append(like, "all_reduce", {first, second}, {first, second},
           {{"communicator", group_}, {"after_previous", true}});
  }

  // Values per channel over all ranks.
  int64_t count_of(VarId x) const {
    const Shape& shape = program_->var(x).shape;
    return shape.elements() / shape[1] * ranks_;
  }

  // x, scale, bias, mean, variance [, z] -> y, mean_out, variance_out, saved_mean, saved_variance,
  // mask
  void cut(const Op& norm) {
    ++norms_;
    const std::vector<VarId>&in = norm.inputs, &out = norm.outputs;
    const VarId y = out[0], sum = temporary(y, ".sum"), squares = temporary(y, ".squares");
    const auto made = [&](int slot, const char* suffix) {
      return out[slot] != kNoVar ? out[slot] : temporary(y, suffix);
    };
    const VarId mean = made(3, ".batch_mean"), variance = made(4, ".batch_variance");
    append(norm, "batch_norm_sums", {in[0], in[3]}, {sum, squares});
    add_up(norm, sum, squares);
    append(norm, "batch_norm_finalize", {sum, squares, in[1], in[2], in[3], in[4]},
           {made(1, ".mean"), made(2, ".variance"), mean, variance, kNoVar, kNoVar, kNoVar},
           {{"epsilon", norm.attributes.number("epsilon")},
            {"momentum", norm.attributes.number("momentum")},
            {"count", count_of(in[0])},
            {"shifted", true}});
    append(norm, "batch_norm_apply",
           {in[0], in[1], in[2], mean, variance, in.size() > 5 ? in[5] : kNoVar}, {y, out[5]},
           {{"epsilon", norm.attributes.number("epsilon")},
            {"activation", norm.attributes.text("activation")}});
  }

  // x, scale, mean, variance, mask, dy... -> dx [, dz], dscale, dbias
  void cut_gradient(const Op& gradient) {
    const std::vector<VarId>&in = gradient.inputs, &out = gradient.outputs;
    const bool adds = out.size() == 4, masked = !gradient.attributes.text("activation").empty();
    const VarId dx = out[0], dscale = out[adds ? 2 : 1], dbias = out[adds ? 3 : 2];
    VarId dz = adds ? out[1] : kNoVar;
    if (dz == kNoVar && in.size() > 6) dz = temporary(in[0], ".dz");
    const VarId product = temporary(in[0], ".dy_product"), sum = temporary(in[0], ".dy_sum");
    const VarId mask = masked ? in[4] : kNoVar;
    std::vector<VarId> inputs = {in[0], in[2], in[3], mask};
    inputs.insert(inputs.end(), in.begin() + 5, in.end());
    const double epsilon = gradient.attributes.number("epsilon");
    append(gradient, "batch_norm_gradient_sums", inputs, {product, sum, dscale, dbias, dz},
           {{"epsilon", epsilon}});
    if (dx == kNoVar) return;
    add_up(gradient, product, sum);
    append(gradient, "batch_norm_data_grad",
           {in[0], in[1], in[2], in[3], product, sum, dz != kNoVar ? dz : in[5],
            dz != kNoVar ? kNoVar : mask},
           {dx}, {{"epsilon", epsilon}, {"count", count_of(in[0])}});
  }

  // Completes the sums of a convolution's result.
  void complete(Op finalize) {
    ++norms_;
    add_up(finalize, finalize.inputs[0], finalize.inputs[1]);
    finalize.attributes.set("count", finalize.attributes.integer("count") * ranks_);
    program_->ops().push_back(std::move(finalize));
  }

  // dscale and dbias are the gradients of parameters, and stay unchanged.
  void complete_gradient(Op gradient) {
    const VarId x = gradient.inputs[0];
    const VarId product = temporary(x, ".dy_product"), sum = temporary(x, ".dy_sum");
    append(gradient, "sum", {gradient.inputs[4]}, {product});
    append(gradient, "sum", {gradient.inputs[5]}, {sum});
    add_up(gradient, product, sum);
    gradient.inputs[4] = product;
    gradient.inputs[5] = sum;
    gradient.attributes.set("count", count_of(x));
    program_->ops().push_back(std::move(gradient));
  }

  const int64_t group_;
  int64_t ranks_ = 1;
  Program* program_ = nullptr;
  int norms_ = 0;
};

}  // namespace

FLEET_PASS(sync_batch_norm) {
  def.help = "batch normalizations take their statistics over all data-parallel ranks";
  def.options = {{"communicator", int64_t{0}}};  // the group of those ranks, used by nothing else
  def.create = create_pass<SyncBatchNorm>;
}

}  // namespace fleet
