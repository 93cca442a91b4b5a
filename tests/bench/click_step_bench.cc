// A whole training step of a model of clicks (Adagrad, tables with sparse rows), as the trainer
// drives it: feeds, then every operation of the training schedule. Batches of 512 rows of Criteo's
// shape: 13 numbers and 26 ids of 1,000,001, of which few are frequent (about Zipf).
//
//   bench_click_step deepfm|wide_deep|dlrm [--rounds N] [--profile] [--print_plan]
//
// The last line: "step SECONDS loss LOSS", the median of the rounds in seconds of the clock.
// Threads: OMP_NUM_THREADS.
// Links: train backend_cpu
#include <chrono>
#include <cmath>
#include <cstdio>

#include "backend/cpu/wait_policy.h"
#include "base/error.h"
#include "tensor/host.h"
#include "tests/bench/step_options.h"
#include "tests/bench/times.h"
#include "train/session.h"

namespace fleet::bench {
namespace {

constexpr int64_t kBatch = 512, kSlots = 26, kDense = 13, kIds = 1000001;
constexpr int kBatches = 32;

struct Options : StepOptions {
  std::string model;
};

Options parse(int argc, char** argv) {
  Options options{{.rounds = 100}, {}};
  for (int i = 1; i < argc; ++i) {
    if (options.take(argc, argv, &i)) continue;
    if (argv[i][0] == '-' || !options.model.empty()) {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --rounds N, --profile and --print_plan");
    }
    options.model = argv[i];
  }
  if (options.model.empty()) options.model = "deepfm";
  return options;
}

struct Batch {
  std::vector<int64_t> ids;
  std::vector<float> dense, label;
};

// tests/bench/peers/click_torch.py draws the same.
Batch make_batch(uint64_t* state) {
  const auto draw = [&] {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(*state >> 33) / 2147483648.0;
  };
  Batch batch;
  for (int64_t i = 0; i < kBatch * kSlots; ++i) {
    // Densities fall as 1 / id: a logarithm is uniform. Each slot has its own frequent ids.
    const auto rank = static_cast<int64_t>(std::exp(draw() * std::log(1e6)));
    batch.ids.push_back((rank * 7919 + i % kSlots * 38461) % kIds);
  }
  for (int64_t i = 0; i < kBatch * kDense; ++i) batch.dense.push_back(static_cast<float>(draw()));
  for (int64_t i = 0; i < kBatch; ++i) batch.label.push_back(draw() < 0.25 ? 1 : 0);
  return batch;
}

class ClickStep {
 public:
  ClickStep(Device& device, const std::string& model)
      : job_(job_of(model)), session_(job_, {.columns = columns()}, device, nullptr) {
    session_.executor().initialize(1);
    uint64_t state = 1;
    for (int i = 0; i < kBatches; ++i) batches_.push_back(make_batch(&state));
  }

  void run() {
    const Batch& batch = batches_[step_ % kBatches];
    feed<int64_t>("ids", batch.ids);
    feed<float>("dense", batch.dense);
    feed<float>("label", batch.label);
    feed<float>("weight", ones_);
    feed<int64_t>("sample_key", keys_);
    feed<float>("sample_denominator", std::vector<float>{kBatch});
    feed<float>("learning_rate", std::vector<float>{0.01f});
    session_.executor().run({.step = step_++});
    session_.executor().synchronize();
  }

  float loss() { return executor().values<float>(session_.training().loss)[0]; }
  Executor& executor() { return session_.executor(); }

 private:
  static std::vector<Column> columns() {
    return {{"label", DType::kFloat32, {1}},
            {"ids", DType::kInt64, {kSlots, 1}},
            {"dense", DType::kFloat32, {kDense}}};
  }
  static Job job_of(const std::string& model) {
    return make_job(ConfigTree::from_json(
        R"({"task": "click", "model": {"name": ")" + model +
            R"("}, "data": {"source": "synthetic", "batch_size": )" + std::to_string(kBatch) + R"(},
                                              "optimizer": {"name": "adagrad"}})",
        "click_step"));
  }
  template <typename T>
  void feed(const char* name, const std::vector<T>& values) {
    session_.executor().feed(session_.training().feed(name), std::span<const T>(values));
  }

  Job job_;
  Session session_;
  std::vector<Batch> batches_;
  const std::vector<float> ones_ = std::vector<float>(kBatch, 1);
  const std::vector<int64_t> keys_ = std::vector<int64_t>(kBatch);
  int64_t step_ = 0;
};

int run(const Options& options) {
  HostDevice device;
  ClickStep step(device, options.model);
  if (options.print_plan) std::fputs(step.executor().plan().text().c_str(), stdout);
  for (int i = 0; i < 5; ++i) step.run();
  step.executor().set_profiling(options.profile);
  std::vector<double> seconds;
  for (int i = 0; i < options.rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    step.run();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  if (options.profile) std::fputs(step.executor().profile().c_str(), stdout);
  std::printf("step %.6f loss %.4f\n", median(seconds), step.loss());
  return 0;
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  fleet::cpu::limit_spinning(argv);  // as fleet-worker
  try {
    return fleet::bench::run(fleet::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_click_step: %s\n", error.what());
    return 1;
  }
}
