// Training with parameter servers, in the order of Paddle's scripts: the comments are their lines
// in Python. The same program trains without servers too, with the same result.
//
//   fleetrun --server_num=2 --worker_num=2 ./train_parameter_servers
//   fleetrun --nproc_per_node=2 ./train_parameter_servers
//
// --mode=async or geo: trainers do not wait for each other in a step.
#include <fleetrun/api/fleet.h>

#include <cstdio>

#include "arguments.h"

namespace {

// Equal on servers and trainers.
const fleet::Values kKeys = {{"train.device", "cpu"}, {"train.deterministic", true}};

void train(const fleet::Worker& worker, const fleet::Model& model, fleet::Loader& loader,
           const Arguments& arguments) {
  // exe.run(fluid.default_startup_program()); fleet.init_worker()
  fleet::ProgramExecutor exe = fleet::init_worker(worker, model, kKeys);
  const std::string resume = arguments.text("resume");
  if (!resume.empty()) exe.load(resume);
  const int64_t steps = arguments.number("steps", 4);
  // for data in loader(): loss = exe.run(program, feed=data, fetch_list=[loss])
  loader.start_epoch(0, exe.steps());
  while (exe.steps() < steps) {
    const fleet::data::Batch* const data = loader.next();
    if (!data) break;
    const double loss = exe.run(*data, {"loss"})[0];
    std::printf("trainer %d, step %lld: loss %f\n", worker.rank(),
                static_cast<long long>(exe.steps()), loss);
    std::fflush(stdout);
    if (exe.agree_to_stop(worker.wants_to_stop())) break;
  }
  // fleet.save_persistables(exe, dirname)
  const std::string folder = arguments.text("save");
  if (!folder.empty()) fleet::save_persistables(exe, folder);
  // fleet.stop_worker()
  fleet::stop_worker(exe);
}

void run(const Arguments& arguments) {
  // fleet.init(role_maker.PaddleCloudRoleMaker())
  const fleet::Worker worker = fleet::init_process();
  fleet::Model model("mlp", {{"num_classes", 10}});
  fleet::Loader loader = model.train_loader(images(arguments));
  const std::string mode = arguments.text("mode", "sync");
  // strategy = fleet.DistributedStrategy(); strategy.a_sync = False
  fleet::DistributedStrategy strategy;
  strategy.set("a_sync", mode != "sync");
  // strategy.a_sync_configs = {"k_steps": 2}
  if (mode == "geo") strategy.set("a_sync_configs.k_steps", 2);
  // optimizer = fleet.distributed_optimizer(fluid.optimizer.Adam(0.001), strategy)
  // optimizer.minimize(loss)
  // In async, several servers cannot clip by the norm of all gradients.
  const fleet::Adam adam(0.001, {{"clip", mode == "sync" ? "global_norm" : "none"}});
  fleet::distributed_optimizer(adam, strategy).minimize(model.loss());
  if (worker.is_server()) {
    // fleet.init_server(); fleet.run_server()
    fleet::ParameterServer server = fleet::init_server(worker, model, kKeys);
    fleet::run_server(server);
  } else {
    train(worker, model, loader, arguments);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run_example("train_parameter_servers",
                     {"data", "list", "image", "batch", "steps", "save", "resume", "mode"}, argc,
                     argv, run);
}
