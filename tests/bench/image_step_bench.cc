// Training steps of one network on the CPU for cpu_families.py, which runs them between PyTorch's.
// Prints "ready", a line that describes the process, and for each line of its input:
//
//   step       processor seconds of a training step
//   products   processor seconds of the step's products alone (plan_products.h)
//   profile    the operations of two steps, by kind; then "end"
//
//   bench_image_step NETWORK BATCH [bfloat16]
//
// Run it with OMP_NUM_THREADS=1. ONEDNN_MAX_CPU_ISA=AVX2 limits oneDNN's kernels, not our loops.
// Links: train backend_cpu
// Libraries: DNNL::dnnl OpenMP::OpenMP_CXX
#include <omp.h>

#include <cstdio>
#include <dnnl.hpp>
#include <iostream>
#include <string>

#include "base/log.h"
#include "tests/bench/image_step.h"
#include "tests/bench/plan_products.h"
#include "tests/bench/times.h"

namespace fleet::bench {
namespace {

template <typename Body>
void print_seconds_of(const Body& body) {
  const double begin = processor_seconds();
  body();
  std::printf("%.6f\n", processor_seconds() - begin);
}

const char* isa_name() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "SSE4.1";
    case dnnl::cpu_isa::avx:
      return "AVX";
    case dnnl::cpu_isa::avx2:
    case dnnl::cpu_isa::avx2_vnni:
      return "AVX2";
    default:
      return dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::all ? "all" : "AVX-512";
  }
}

void profile(ImageStep& step) {
  step.executor().set_profiling(true);
  step.run();
  step.run();
  std::fputs(step.executor().profile().c_str(), stdout);
  step.executor().set_profiling(false);
  std::puts("end");
}

int run(const std::string& network, int64_t batch, bool narrow) {
  set_up_logging("ERROR", "bench");
  cpu::CpuDevice device;
  ImageStep step(device, network, batch,
                 narrow ? R"({"amp": true, "amp_configs": {"dtype": "bfloat16"}})" : "{}");
  PlanProducts products(step.executor().plan(), device);
  const dnnl::version_t* version = dnnl_version();
  std::printf("ready\noneDNN %d.%d.%d, %s, %d threads, %s, %zu products\n", version->major,
              version->minor, version->patch, isa_name(), omp_get_max_threads(),
              narrow ? "bfloat16" : "float32", products.count());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line); std::fflush(stdout)) {
    if (line == "step") {
      print_seconds_of([&] { step.run(); });
    } else if (line == "products") {
      products.fill();
      print_seconds_of([&] { products.run(); });
    } else if (line == "profile") {
      profile(step);
    } else {
      throw Error(ErrorCode::kUsage, "unknown command", line,
                  "there are step, products and profile");
    }
  }
  return 0;
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  try {
    const bool narrow = argc == 4 && std::string(argv[3]) == "bfloat16";
    if ((argc != 3 && !narrow) || std::atoi(argv[2]) < 1) {
      throw fleet::Error(fleet::ErrorCode::kUsage, "it takes NETWORK BATCH [bfloat16]",
                         "arguments");
    }
    return fleet::bench::run(argv[1], std::atoi(argv[2]), narrow);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_image_step: %s\n", error.what());
    return 1;
  }
}
