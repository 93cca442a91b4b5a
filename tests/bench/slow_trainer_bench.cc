// A program with parameter servers whose steps are mostly a sleep, so that few cores serve many
// processes: scripts/bench.sh ps_train --apart starts it through fleetrun, as servers and trainers.
// The last trainer sleeps three times as long as the others.
// Links: api backend_cpu rendezvous
//
// fleetrun --server_num=2 --worker_num=4 bench_slow_trainer sync|async STEPS MILLISECONDS
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "api/fleet.h"
#include "rendezvous/store_client.h"

namespace fleet {
namespace {

constexpr int kBatch = 4;
const Values kKeys = {{"train.device", "cpu"}};

struct Steps {
  bool async;
  int64_t count;  // of a fast trainer
  std::chrono::milliseconds sleep;
};

void train(const Worker& worker, const Model& model, Loader& loader, const Steps& steps) {
  ProgramExecutor exe = init_worker(worker, model, kKeys);
  const bool slow = worker.rank() + 1 == worker.size();
  const int64_t count = slow && steps.async ? steps.count / 3 : steps.count;
  loader.start_epoch(0, 0);
  const auto begun = std::chrono::steady_clock::now();
  for (int64_t step = 0; step < count; ++step) {
    const data::Batch* const batch = loader.next();
    FLEET_CHECK(batch, "too few samples");
    std::this_thread::sleep_for(steps.sleep * (slow ? 3 : 1));
    exe.run(*batch);
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begun;
  std::printf("slow_trainer: rank %d samples %lld seconds %.3f\n", worker.rank(),
              static_cast<long long>(count * kBatch), seconds.count());
  std::fflush(stdout);
  stop_worker(exe);
}

void run(const Steps& steps) {
  const Worker worker = init_process();
  Model model("mlp", {{"num_classes", 10}});
  Loader loader = model.train_loader({{"source", "synthetic"},
                                      {"batch_size", kBatch},
                                      {"image.channels", 1},
                                      {"image.height", 8},
                                      {"image.width", 8},
                                      {"train.samples", 8 * kBatch * steps.count}});
  DistributedStrategy strategy;
  if (steps.async) strategy.set("a_sync", true);
  distributed_optimizer(Sgd(0.001), strategy).minimize(model.loss());
  if (worker.is_server()) {
    ParameterServer server = init_server(worker, model, kKeys);
    run_server(server);
  } else {
    train(worker, model, loader, steps);
  }
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: bench_slow_trainer sync|async STEPS MILLISECONDS\n");
    return 2;
  }
  fleet::set_store_connector(fleet::connect_store_from_env);
  try {
    fleet::run({.async = std::string(argv[1]) == "async",
                .count = std::atoll(argv[2]),
                .sleep = std::chrono::milliseconds(std::atoll(argv[3]))});
    return 0;
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "slow_trainer: %s\n", error.what());
    return fleet::exit_code_for(error.code());
  }
}
