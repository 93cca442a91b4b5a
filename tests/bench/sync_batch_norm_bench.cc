// Cost of sync_batch_norm: a training step of ResNet-20 on CIFAR-10's images on two ranks of one
// host (shm; their own threads and cores) with it and without it, in turns.
//   scripts/bench.sh sync_batch_norm [BATCH_OF_A_RANK [ROUNDS]]
//
// Links: ops optim models passes strategy comm exec backend_cpu
// Libraries: OpenMP::OpenMP_CXX
#include <omp.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "exec/communicator_set.h"
#include "exec/executor.h"
#include "models/model.h"
#include "models/training.h"
#include "tests/bench/times.h"
#include "tests/engine/comm/ranks.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

constexpr int kRanks = 2;
constexpr int kSteps = 5;  // of a turn
constexpr double kAsked = 1.25;

struct Trained {
  Trained(const std::string& strategy, int64_t batch, Rank& rank) {
    const ModelDef& def = model_registry().get("resnet20");
    Program program;
    const Training training = build_training(
        program, {.model = "resnet20",
                  .model_settings = ConfigTree::from_json("{}", "bench").validate(def.schema),
                  .batch = batch,
                  .columns = image_columns(def.image)});
    Strategy rewrites =
        make_strategy(strategy, {.rank = rank.comm.rank(), .ranks = rank.comm.size()});
    rewrites.append_backward(program, training.forward, training.loss);
    rewrites.append_optimizer(training.feed("learning_rate"),
                              ConfigTree::from_json(R"({"name": "momentum"})", "bench")
                                  .validate(optimizer_schema("momentum")));
    communicators = std::make_unique<CommunicatorSet>(program.groups(), &rank.comm);
    executor = std::make_unique<Executor>(plan_program(std::move(program), {training.loss}),
                                          rank.device, communicators->all());
    executor->initialize(1);
    std::vector<float> image(batch * def.image.elements());
    for (size_t i = 0; i < image.size(); ++i) {
      image[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    }
    executor->feed(training.feed("image"), image);
    executor->feed(training.feed("label"), std::vector<int64_t>(batch, 1));
    executor->synchronize();
  }
  double turn() {
    const auto begin = std::chrono::steady_clock::now();
    for (int step = 0; step < kSteps; ++step) executor->run({.step = step});
    executor->synchronize();
    return ms_since(begin) / kSteps;
  }
  std::unique_ptr<CommunicatorSet> communicators;
  std::unique_ptr<Executor> executor;
};

void run(int64_t batch, int rounds) {
  run_ranks(on_one_host("shm", kRanks), [&](Rank& rank) {
    omp_set_num_threads(std::max(1, omp_get_num_procs() / kRanks));
    // Groups of all ranks take the rank's communicator: each contender has one of its own.
    std::vector<int> all;
    for (int i = 0; i < kRanks; ++i) all.push_back(i);
    const auto own = rank.comm.split(all);
    Rank other{rank.device, *own, rank.stream};
    Trained plain("", batch, rank), synced("sync_batch_norm: true", batch, other);
    std::vector<double> plain_ms, synced_ms, ratios;
    for (int round = 0; round <= rounds; ++round) {
      const double without = plain.turn(), with = synced.turn();
      if (round == 0) continue;  // touches memory
      plain_ms.push_back(without);
      synced_ms.push_back(with);
      ratios.push_back(with / without);
    }
    if (rank.comm.rank() != 0) return;
    const double ratio = median(ratios);
    std::printf(
        "sync_batch_norm: ratio %.3f (resnet20, %d ranks x %lld: %.2f ms a step, without %.2f ms; "
        "median of %d turns; asked for <= %.2f: %s)\n",
        ratio, kRanks, static_cast<long long>(batch), median(synced_ms), median(plain_ms), rounds,
        kAsked, ratio <= kAsked ? "met" : "MISSED");
  });
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::set_up_logging("ERROR", "bench");
  fleet::run(argc > 1 ? std::stol(argv[1]) : 64, argc > 2 ? std::stoi(argv[2]) : 30);
  return 0;
}
