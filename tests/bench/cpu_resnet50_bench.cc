// A whole ResNet50 training step (float32, 16 images of 224², momentum with weight decay; one rank,
// all cores) against the step's convolution and batch-norm primitives alone, in turns.
//
//   bench_cpu_resnet50 [--rounds N] [--profile] [--print_plan] [--cpu_time]
//
// --cpu_time measures the calling thread's processor time instead of the clock: for a machine that
// is busy, with OMP_NUM_THREADS=1.
// Links: train backend_cpu
// Libraries: DNNL::dnnl OpenMP::OpenMP_CXX
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tensor/host.h"
#include "tests/bench/resnet50_primitives.h"
#include "train/session.h"

namespace fleet::bench {
namespace {

constexpr int64_t kBatch = 16;

struct Options {
  int rounds = 9;
  bool profile = false, print_plan = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--rounds") && i + 1 < argc) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (!std::strcmp(argv[i], "--profile")) {
      options.profile = true;
    } else if (!std::strcmp(argv[i], "--print_plan")) {
      options.print_plan = true;
    } else if (!std::strcmp(argv[i], "--cpu_time")) {
      use_cpu_time() = true;
    } else {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --rounds N, --profile, --print_plan and --cpu_time");
    }
  }
  return options;
}

Job resnet50_job() {
  ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "resnet50"},
      "data": {"source": "synthetic", "batch_size": 16},
      "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
      "learning_rate": {"name": "constant", "base": 0.1}
    })",
                                          "cpu_resnet50");
  return make_job(tree);
}

// The training step as the trainer drives it: feeds, then every operation of the training schedule.
class WholeStep {
 public:
  WholeStep()
      : session_(resnet50_job(), {3, 224, 224}, {}, device_, nullptr),
        images_(kBatch * 3 * 224 * 224),
        labels_(kBatch),
        weights_(kBatch, 1.0f),
        keys_(kBatch) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    for (float& value : images_) value = normal(random);
    for (int64_t i = 0; i < kBatch; ++i) labels_[i] = keys_[i] = i * 61;
  }

  void run() {
    const Training& training = session_.training();
    Executor& executor = session_.executor();
    executor.feed(training.image, images_.data());
    executor.feed(training.label, labels_.data());
    executor.feed(training.weight, weights_.data());
    executor.feed(training.sample_key, keys_.data());
    executor.feed(training.learning_rate, &rate_);
    executor.run({.step = step_++});
    executor.synchronize();
  }

  float loss() { return executor().values<float>(session_.training().loss)[0]; }
  Executor& executor() { return session_.executor(); }

 private:
  HostDevice device_;
  Session session_;
  std::vector<float> images_;
  std::vector<int64_t> labels_;
  std::vector<float> weights_;
  std::vector<int64_t> keys_;
  float rate_ = 0.01f;
  int64_t step_ = 0;
};

int run(const Options& options) {
  WholeStep step;
  if (options.print_plan) std::fputs(step.executor().plan().text().c_str(), stdout);
  ResNet50Primitives primitives(kBatch);
  double convolutions = 0;
  step.run();
  primitives.run(&convolutions);
  step.executor().set_profiling(options.profile);
  std::vector<double> ours, bound, shares, ratios;
  for (int i = 0; i < options.rounds; ++i) {
    const double start = seconds_now();
    step.run();
    const double middle = seconds_now();
    convolutions = 0;
    primitives.run(&convolutions);
    const double end = seconds_now();
    ours.push_back(middle - start);
    bound.push_back(end - middle);
    ratios.push_back(bound.back() / ours.back());
    shares.push_back(primitives.operations() / convolutions / measure_peak());
    std::fprintf(stderr, "round %d: step %.0f ms, primitives %.0f ms, ratio %.3f\n", i + 1,
                 1e3 * ours.back(), 1e3 * bound.back(), ratios.back());
  }
  if (options.profile) std::fputs(step.executor().profile().c_str(), stdout);
  std::printf(
      "loss after %d steps: %.4f; %d threads; the primitives' convolutions run at %.1f %% "
      "of the measured peak\n",
      options.rounds + 1, step.loss(), omp_get_max_threads(), 100 * median(shares));
  std::printf("cpu_resnet50: ratio %.3f (ours %.2f images/s, primitives %.2f images/s)\n",
              median(ratios), kBatch / median(ours), kBatch / median(bound));
  return 0;
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  try {
    return fleet::bench::run(fleet::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_cpu_resnet50: %s\n", error.what());
    return 1;
  }
}
