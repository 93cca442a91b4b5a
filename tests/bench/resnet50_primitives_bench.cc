// The convolutions and batch norms of a ResNet50 training step alone, 16 images of 224², all cores:
// how near to the machine's peak of multiply-adds they come. float32; --bf16: bfloat16.
//
//   bench_resnet50_primitives [--bf16] [--rounds N] [--cpu_time]   --cpu_time: see
//   bench_cpu_resnet50
// Links: tensor
// Libraries: DNNL::dnnl OpenMP::OpenMP_CXX
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/resnet50_primitives.h"

int main(int argc, char** argv) {
  using namespace fleet::bench;
  int rounds = 7;
  bool bf16 = false;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--rounds") && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (!std::strcmp(argv[i], "--cpu_time")) {
      use_cpu_time() = true;
    } else if (!std::strcmp(argv[i], "--bf16")) {
      bf16 = true;
    } else {
      std::fprintf(stderr, "bench_resnet50_primitives: unknown option %s\n", argv[i]);
      return 2;
    }
  }
  ResNet50Primitives primitives(
      16, bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32);
  double unused = 0;
  primitives.run(&unused);
  std::vector<double> steps, shares;
  for (int i = 0; i < rounds; ++i) {
    const double peak = measure_peak(bf16);
    double convolutions = 0;
    const double start = seconds_now();
    primitives.run(&convolutions);
    steps.push_back(seconds_now() - start);
    shares.push_back(primitives.operations() / convolutions / peak);
    std::printf("run %d: %.2f images/s, convolutions %.1f %% of %.0f GFLOP/s\n", i + 1,
                static_cast<double>(primitives.batch()) / steps.back(), 100 * shares.back(),
                peak * 1e-9);
  }
  std::printf(
      "resnet50_primitives: ratio %.3f (convolutions of the measured peak; %.2f images/s "
      "with batch norm, %d threads)\n",
      fleet::median(shares), static_cast<double>(primitives.batch()) / fleet::median(steps),
      omp_get_max_threads());
}
