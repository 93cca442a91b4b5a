// Gain of the fusing passes: a training step on the CPU without them over the same step with
// them, in turns; of ResNet-50, and of a perceptron whose gelu is written out as tanh, products and
// sums (enable_auto_fusion): scripts/bench.sh fusions [BATCH [ROUNDS [--profile]]]
//
// Links: ops models passes strategy exec backend_cpu

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "models/model.h"
#include "models/network.h"
#include "models/training.h"
#include "tensor/host.h"
#include "tests/bench/times.h"
#include "tests/engine/strategy/strategy_text.h"

namespace fleet {
namespace {

struct Job {
  std::string name;
  std::string strategy;  // switches of its build strategy; what is not named is fused
  std::unique_ptr<Executor> executor;
  Training training;
  std::vector<double> seconds = {};
};

void build(Job& job, int64_t batch, Device& device) {
  const ModelDef& def = model_registry().get("resnet50");
  Program program;
  job.training = build_training(
      program, {.model = "resnet50",
                .model_settings = ConfigTree::from_json("{}", "bench").validate(def.schema),
                .batch = batch,
                .columns = image_columns(def.image)});
  make_strategy("build_strategy { " + job.strategy + " }")
      .append_backward(program, job.training.forward, job.training.loss);
  job.executor = std::make_unique<Executor>(plan_program(std::move(program), {job.training.loss}),
                                            device, nullptr);
  job.executor->initialize(1);
  std::vector<float> image(batch * 3 * 224 * 224);
  for (size_t i = 0; i < image.size(); ++i)
    image[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
  const std::vector<int64_t> label(batch, 1);
  job.executor->feed(job.training.feed("image"), image);
  job.executor->feed(job.training.feed("label"), label);
  job.executor->synchronize();
}

double step(Executor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  executor.run({});
  executor.synchronize();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// gelu's tanh form, as networks write it out.
VarId written_out_gelu(Program& program, SectionId section, VarId x) {
  const auto emit = [&](const char* type, std::vector<VarId> inputs, Attributes attributes = {}) {
    return program.emit(section, type, std::move(inputs), std::move(attributes))[0];
  };
  const auto scale = [&](VarId v, double factor, double bias) {
    return emit("scale", {v}, {{"scale", factor}, {"bias", bias}});
  };
  const VarId cube = emit("elementwise_mul", {emit("elementwise_mul", {x, x}), x});
  const VarId inner = emit("elementwise_add", {x, scale(cube, 0.044715, 0)});
  const VarId gate = scale(emit("tanh", {scale(inner, 0.7978845608, 0)}), 0.5, 0.5);
  return emit("elementwise_mul", {x, gate});
}

constexpr int64_t kRows = 512, kWidth = 512;
constexpr int kLayers = 4;

void build_perceptron(Job& job, Device& device) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  Network network(program, forward, true, kNoVar);
  const VarId image = program.feed("image", DType::kFloat32, {kRows, kWidth});
  VarId x = image;
  for (int layer = 0; layer < kLayers; ++layer) {
    x = network.linear("fc" + std::to_string(layer), x, {.features = kWidth});
    x = written_out_gelu(program, forward, x);
  }
  const VarId loss = program.emit(forward, "mean", {x})[0];
  make_strategy("build_strategy { " + job.strategy + " }").append_backward(program, forward, loss);
  job.executor =
      std::make_unique<Executor>(plan_program(std::move(program), {loss}), device, nullptr);
  job.executor->initialize(1);
  std::vector<float> values(kRows * kWidth);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
  }
  job.executor->feed(image, values);
  job.executor->synchronize();
}

// Chains of elementwise operations as one kernel each.
void run_chains(int rounds, bool profile) {
  HostDevice device;
  std::vector<Job> jobs;
  jobs.push_back({"unfused", "enable_auto_fusion: false"});
  jobs.push_back({"fused", "enable_auto_fusion: true"});
  for (Job& job : jobs) build_perceptron(job, device);
  std::vector<double> ratios;
  for (int round = 0; round <= 3 * rounds; ++round) {
    const double apart = step(*jobs[0].executor), fused = step(*jobs[1].executor);
    if (round > 0) ratios.push_back(apart / fused);
  }
  std::printf(
      "fusions: enable_auto_fusion, %d layers of %lld, gelu written out, batch %lld: ratio %.2f "
      "(activations %.1f -> %.1f MiB)\n",
      kLayers, static_cast<long long>(kWidth), static_cast<long long>(kRows), median(ratios),
      static_cast<double>(jobs[0].executor->plan().arena_bytes) / (1 << 20),
      static_cast<double>(jobs[1].executor->plan().arena_bytes) / (1 << 20));
  if (!profile) return;
  for (Job& job : jobs) {
    job.executor->set_profiling(true);
    for (int i = 0; i < 3; ++i) step(*job.executor);
    std::printf("\n%s\n%s", job.name.c_str(), job.executor->profile().c_str());
  }
}

int run(int64_t batch, int rounds, bool profile) {
  run_chains(rounds, profile);
  HostDevice device;
  std::vector<Job> jobs;
  const std::string no_activations = "fuse_bn_act_ops: false fuse_elewise_add_act_ops: false ";
  const std::string no_sums = "enable_auto_fusion: false ", no_add = "fuse_bn_add_act_ops: false ";
  jobs.push_back({"nothing", no_activations + no_sums + no_add});
  jobs.push_back({"fuse_bn_act, fuse_elewise_add_act", no_sums + no_add});
  jobs.push_back({"... and enable_auto_fusion", no_add});
  jobs.push_back({"... and fuse_bn_add_act", ""});
  for (Job& job : jobs) build(job, batch, device);
  for (int round = 0; round <= rounds; ++round) {
    for (Job& job : jobs) {
      const double seconds = step(*job.executor);
      if (round > 0) job.seconds.push_back(seconds);  // the first touches memory
    }
  }
  for (Job& job : jobs) {
    std::vector<double> ratios;
    for (size_t i = 0; i < job.seconds.size(); ++i) {
      ratios.push_back(jobs[0].seconds[i] / job.seconds[i]);
    }
    std::printf("%-36s %.3f times the speed of nothing fused (median of %d turns, batch %lld)\n",
                job.name.c_str(), median(ratios), rounds, static_cast<long long>(batch));
  }
  if (!profile) return 0;
  for (Job* job : {&jobs[1], &jobs.back()}) {
    job->executor->set_profiling(true);
    for (int i = 0; i < 3; ++i) step(*job->executor);
    std::printf("\n%s\n%s", job->name.c_str(), job->executor->profile().c_str());
  }
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  const bool profile = argc > 1 && std::string(argv[argc - 1]) == "--profile";
  const int numbers = argc - (profile ? 1 : 0);
  return fleet::run(numbers > 1 ? std::stol(argv[1]) : 16, numbers > 2 ? std::stoi(argv[2]) : 7,
                    profile);
}
