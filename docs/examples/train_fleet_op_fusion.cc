// The example of Paddle's "OP fusion (computation, communication)": the comments are its lines in
// Python. The log names each fusion and the number of remaining allreduces.
//
//   fleetrun --nproc_per_node=2 ./train_fleet_op_fusion
//   fleetrun --gpus=0,1 ./train_fleet_op_fusion --data=/pathto/imagenet --steps=0
#include <fleetrun/api/fleet.h>

#include <cstdio>

#include "arguments.h"

namespace {

void run(const Arguments& arguments) {
  const fleet::Worker worker = fleet::init_collective();
  fleet::Model model("resnet50", {{"num_classes", arguments.number("classes", 102)}});
  fleet::Loader loader = model.train_loader(images(arguments));

  // build_strategy = paddle.static.BuildStrategy()
  fleet::BuildStrategy build_strategy;
  // build_strategy.fuse_elewise_add_act_ops = True
  build_strategy.set("fuse_elewise_add_act_ops", true);
  // build_strategy.fuse_bn_act_ops = True
  build_strategy.set("fuse_bn_act_ops", true);
  // build_strategy.fuse_relu_depthwise_conv = True
  build_strategy.set("fuse_relu_depthwise_conv", true);
  // build_strategy.fuse_broadcast_ops = True
  build_strategy.set("fuse_broadcast_ops", true);
  // build_strategy.fuse_all_optimizer_ops = True
  build_strategy.set("fuse_all_optimizer_ops", true);

  // strategy = paddle.distributed.fleet.DistributedStrategy()
  fleet::DistributedStrategy strategy;
  // strategy.build_strategy = build_strategy
  strategy.set_build_strategy(build_strategy);

  // strategy.fuse_grad_size_in_MB = 16
  strategy.set("fuse_grad_size_in_MB", 16);
  // strategy._fuse_grad_size_in_TFLOPS = 50
  strategy.set("_fuse_grad_size_in_TFLOPS", 50);
  // strategy.fuse_all_reduce_ops=True
  strategy.set("fuse_all_reduce_ops", true);

  const fleet::Momentum momentum(0.01, 0.9, {{"weight_decay", 1e-4}});
  fleet::distributed_optimizer(momentum, strategy).minimize(model.loss());
  fleet::ProgramExecutor exe(worker, model);

  const int64_t steps = arguments.number("steps", 6);  // 0: the whole epoch
  loader.start_epoch(0);
  while (const fleet::data::Batch* batch = loader.next()) {
    if (batch->index % 5 == 0) {
      const auto values = exe.run(*batch, {"loss", "acc1", "acc5"});
      std::printf("[Epoch %lld, batch %lld] loss: %.5f, acc1: %.5f, acc5: %.5f\n",
                  static_cast<long long>(batch->epoch), static_cast<long long>(batch->index),
                  values[0], values[1], values[2]);
      std::fflush(stdout);
    } else {
      exe.run(*batch);
    }
    if (exe.steps() == steps || exe.agree_to_stop(worker.wants_to_stop())) break;
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("train_fleet_op_fusion",
                     {"data", "list", "image", "batch", "classes", "steps"}, argc, argv, run);
}
