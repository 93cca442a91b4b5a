// The ResNet50 example of Paddle's "Collective training practice", line by line: the comments are
// its lines in Python.
//
//   fleetrun --nproc_per_node=2 ./example_collective
//   fleetrun --gpus=0,1,2,3,4,5,6,7 ./example_collective --data=/pathto/imagenet --steps=0
//
// Without --data it trains made-up images, so that it ends in seconds on two CPUs.
#include <fleetrun/api/fleet.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "arguments.h"

namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void run(const Arguments& arguments) {
  // os.environ['FLAGS_fuse_parameter_memory_size'] = "16"
  ::setenv("FLAGS_fuse_parameter_memory_size", "16", 0);
  // os.environ['FLAGS_fuse_parameter_groups_size'] = "50"
  ::setenv("FLAGS_fuse_parameter_groups_size", "50", 0);
  // os.environ['FLAGS_fraction_of_gpu_memory_to_use'] = "0.7"
  ::setenv("FLAGS_fraction_of_gpu_memory_to_use", "0.7", 0);

  // paddle.enable_static()
  // configs = X.parse_train_configs()
  // fleet.init(is_collective=True)
  const fleet::Worker worker = fleet::init_collective();

  // model = X.applications.Resnet50()
  fleet::Model model("resnet50", {{"num_classes", arguments.number("classes", 102)}});
  // downloader = X.utils.Downloader(); local_path = downloader.download_from_bos(...)
  // batch_size = 32
  // loader = model.get_train_dataloader(local_path, batch_size=batch_size)
  fleet::Loader loader = model.train_loader(images(arguments));

  // dist_strategy = fleet.DistributedStrategy()
  fleet::DistributedStrategy dist_strategy;

  // dist_strategy.sync_nccl_allreduce = True
  dist_strategy.set("sync_nccl_allreduce", true);
  // dist_strategy.nccl_comm_num = 2
  dist_strategy.set("nccl_comm_num", 2);
  // dist_strategy.fuse_all_reduce_ops = True
  dist_strategy.set("fuse_all_reduce_ops", true);

  // build_strategy = fluid.BuildStrategy()
  fleet::BuildStrategy build_strategy;
  // build_strategy.enable_sequential_execution = True
  build_strategy.set("enable_sequential_execution", true);
  // build_strategy.fuse_elewise_add_act_ops = True
  build_strategy.set("fuse_elewise_add_act_ops", true);
  // build_strategy.fuse_bn_act_ops = True
  build_strategy.set("fuse_bn_act_ops", true);
  // build_strategy.enable_auto_fusion = True
  build_strategy.set("enable_auto_fusion", true);
  // build_strategy.fuse_all_optimizer_ops = True
  build_strategy.set("fuse_all_optimizer_ops", true);
  // dist_strategy.build_strategy = build_strategy
  dist_strategy.set_build_strategy(build_strategy);

  // execution_strategy = fluid.ExecutionStrategy()
  fleet::ExecutionStrategy execution_strategy;
  // execution_strategy.num_threads = 3
  execution_strategy.set("num_threads", 3);
  // execution_strategy.num_iteration_per_drop_scope = 100
  execution_strategy.set("num_iteration_per_drop_scope", 100);
  // execution_strategy.num_iteration_per_run = 1
  execution_strategy.set("num_iteration_per_run", 1);
  // dist_strategy.execution_strategy = execution_strategy
  dist_strategy.set_execution_strategy(execution_strategy);

  // dist_strategy.amp = True
  dist_strategy.set("amp", true);
  // dist_strategy.amp_configs = {...}
  dist_strategy.set_fields("amp_configs", {{"init_loss_scaling", 128},
                                           {"decr_every_n_nan_or_inf", 2},
                                           {"incr_every_n_steps", 1000},
                                           {"incr_ratio", 2.0},
                                           {"use_dynamic_loss_scaling", true},
                                           {"decr_ratio", 0.5},
                                           {"custom_white_list", std::vector<std::string>{}},
                                           {"custom_black_list", std::vector<std::string>{}}});

  // dist_strategy.save_to_prototxt("dist_strategy.prototxt")
  if (worker.is_first()) dist_strategy.save_to_prototxt("dist_strategy.prototxt");

  // optimizer = fluid.optimizer.Momentum(learning_rate=0.01, momentum=0.9)
  const fleet::Momentum momentum(0.01, 0.9);
  // optimizer = fleet.distributed_optimizer(optimizer, dist_strategy)
  const auto optimizer = fleet::distributed_optimizer(momentum, dist_strategy);
  // optimizer.minimize(model.loss)
  optimizer.minimize(model.loss());

  // place = fluid.CUDAPlace(int(os.environ.get('FLAGS_selected_gpus', 0)))
  // exe = fluid.Executor(place)
  // exe.run(fluid.default_startup_program())
  fleet::ProgramExecutor exe(worker, model);

  const int fetch_every = arguments.number("fetch_every", 1, 1);
  const int64_t steps = arguments.number("steps", 4);  // 0: the whole epoch
  // for i, data in enumerate(loader()):
  loader.start_epoch(0);
  double start_time = seconds();
  while (const fleet::data::Batch* data = loader.next()) {
    const int64_t i = exe.steps();
    if ((i + 1) % fetch_every == 0) {
      // cost_val = exe.run(model.main_prog, feed=data, fetch_list=[model.loss.name])
      const std::vector<double> cost_val = exe.run(*data, {model.loss().name()});
      // print("worker_index: %d, step%d cost = %f, speed: %f" % (...))
      const double time = (seconds() - start_time) / fetch_every;
      std::printf("worker_index: %d, step%lld cost = %f, speed: %f\n", worker.rank(),
                  static_cast<long long>(i), cost_val[0], static_cast<double>(data->size) / time);
      std::fflush(stdout);
      start_time = seconds();
    } else {
      // exe.run([]): the documents' "fetch less often"
      exe.run(*data);
    }
    if (exe.steps() == steps || exe.agree_to_stop(worker.wants_to_stop())) break;
  }
  exe.wait();
  const std::string checkpoint = arguments.text("save");
  if (!checkpoint.empty()) exe.save(checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("example_collective",
                     {"data", "list", "image", "batch", "classes", "steps", "fetch_every", "save"},
                     argc, argv, run);
}
