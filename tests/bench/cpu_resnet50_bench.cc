// A whole ResNet50 training step (float32; --bf16: mixed precision in bfloat16; 16 images of 224²,
// momentum with weight decay; one rank, all cores) against the step's convolution and batch-norm
// primitives alone, in turns.
//
//   bench_cpu_resnet50 [--bf16] [--rounds N] [--profile] [--print_plan] [--cpu_time]
//
// --cpu_time measures the calling thread's processor time instead of the clock: for a machine that
// is busy, with OMP_NUM_THREADS=1.
// Links: train backend_cpu
// Libraries: DNNL::dnnl OpenMP::OpenMP_CXX
#include <cstdio>
#include <cstring>

#include "tensor/host.h"
#include "tests/bench/resnet50_primitives.h"
#include "tests/bench/resnet50_step.h"
#include "tests/bench/step_options.h"

namespace fleet::bench {
namespace {

constexpr int64_t kBatch = 16;

StepOptions parse(int argc, char** argv) {
  StepOptions options{.rounds = 9};
  for (int i = 1; i < argc; ++i) {
    if (options.take(argc, argv, &i)) continue;
    if (!std::strcmp(argv[i], "--cpu_time")) {
      use_cpu_time() = true;
    } else {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --bf16, --rounds N, --profile, --print_plan and --cpu_time");
    }
  }
  return options;
}

int run(const StepOptions& options) {
  if (!options.can_run()) return 0;
  HostDevice device;
  ResNet50Step step(device, kBatch, options.bf16);
  if (options.print_plan) std::fputs(step.executor().plan().text().c_str(), stdout);
  using Type = dnnl::memory::data_type;
  ResNet50Primitives primitives(kBatch, options.bf16 ? Type::bf16 : Type::f32);
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
    shares.push_back(primitives.operations() / convolutions / measure_peak(options.bf16));
    std::fprintf(stderr, "round %d: step %.0f ms, primitives %.0f ms, ratio %.3f\n", i + 1,
                 1e3 * ours.back(), 1e3 * bound.back(), ratios.back());
  }
  if (options.profile) std::fputs(step.executor().profile().c_str(), stdout);
  std::printf(
      "loss after %d steps: %.4f; %d threads; the primitives' convolutions run at %.1f %% "
      "of the measured peak, counting what the direct method multiplies\n",
      options.rounds + 1, step.loss(), omp_get_max_threads(), 100 * median(shares));
  std::printf("%s: ratio %.3f (ours %.2f images/s, primitives %.2f images/s)\n",
              options.bf16 ? "cpu_resnet50_bf16" : "cpu_resnet50", median(ratios),
              kBatch / median(ours), kBatch / median(bound));
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
