// 3 x 3 convolutions, forward and both gradients, by Winograd's method (where the engine takes it)
// against the direct one, in turns: shapes of well-known networks, and those at the edges of the
// rule (lib/engine/backend/cpu/winograd.h). Times are processor time of all threads.
//
//   bench_winograd [--rounds N]
//
// With ONEDNN_MAX_CPU_ISA=AVX2, Winograd's method runs in our own loops, as on a processor without
// AVX-512.
//
// Links: ops passes exec backend_cpu
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <random>
#include <string>

#include "exec/executor.h"
#include "passes/backward.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

struct Case {
  int64_t batch, channels, size, filters;
  const char* where;
};
constexpr Case kCases[] = {
    {64, 32, 16, 32, "resnet20"},
    {64, 64, 8, 64, "resnet20"},
    {16, 64, 56, 64, "resnet50"},
    {16, 128, 28, 128, "resnet50"},
    {16, 256, 14, 256, "resnet50"},
    {16, 512, 7, 512, "resnet50"},
    {16, 128, 14, 32, "densenet121"},
    {8, 256, 56, 256, "vgg16"},
    {4, 64, 56, 64, "resnet50"},
    {4, 128, 28, 128, "resnet50"},
    {4, 256, 14, 256, "resnet50"},
    {8, 512, 7, 512, "resnet50"},
    {4, 128, 56, 32, "densenet121"},
    {4, 128, 14, 32, "densenet121"},
    {4, 512, 14, 512, "vgg16"},
    {64, 16, 32, 16, "few channels"},
    {1, 512, 7, 512, "4 tiles"},
    {2, 256, 14, 256, "32 tiles"},
    {64, 512, 2, 512, "tiles used by a quarter"},
    {64, 128, 5, 128, "by 39 %"},
    {64, 128, 6, 128, "by 56 %"},
};

// The directions that a program computes.
struct Directions {
  bool forward, weight, data;
};

std::unique_ptr<Executor> make(const Case& c, const Directions& wanted, bool winograd,
                               Device& device) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x =
      program.parameter("x", {c.batch, c.channels, c.size, c.size}, {.kind = Init::kNormal});
  const VarId w =
      program.parameter("w", {c.filters, c.channels, 3, 3}, {.kind = Init::kNormal, .b = 0.1});
  const VarId y =
      program.emit(forward, "conv2d", {x, w},
                   {{"paddings", std::vector<int64_t>{1, 1}}, {"winograd", winograd}})[0];
  const VarId dy = program.parameter("dy", program.var(y).shape, {.kind = Init::kNormal});
  append_backward_from(program, forward, {{y, dy}}, {});
  std::vector<VarId> results;
  if (wanted.forward) results.push_back(y);
  if (wanted.weight) results.push_back(program.gradient(w));
  if (wanted.data) results.push_back(program.gradient(x));
  PlanOptions options;
  options.device = &device;
  auto executor = std::make_unique<Executor>(plan_program(std::move(program), results, options),
                                             device, nullptr);
  executor->initialize(1);
  executor->run({});
  executor->synchronize();
  return executor;
}

double processor_ms() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e3 * static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_nsec);
}

double ms_of(Executor& executor) {
  const double begin = processor_ms();
  executor.run({});
  executor.synchronize();
  return processor_ms() - begin;
}

struct Times {
  double ours, direct, ratio;  // medians
};

Times compare(const Case& c, const Directions& wanted, int rounds, Device& device) {
  const auto ours = make(c, wanted, true, device), direct = make(c, wanted, false, device);
  std::vector<double> our_times, direct_times, ratios;
  for (int i = 0; i < rounds; ++i) {
    our_times.push_back(ms_of(*ours));
    direct_times.push_back(ms_of(*direct));
    ratios.push_back(direct_times.back() / our_times.back());
  }
  return {median(our_times), median(direct_times), median(ratios)};
}

void print(const Case& c, int rounds, Device& device) {
  const Times all = compare(c, {true, true, true}, rounds, device);
  const Times forward = compare(c, {true, false, false}, rounds, device);
  const Times weight = compare(c, {false, true, false}, rounds, device);
  const Times data = compare(c, {false, false, true}, rounds, device);
  std::printf(
      "winograd: ratio %.2f (ours %.2f ms, direct %.2f ms; forward %.2f, weight %.2f, data %.2f) "
      "%lld x %lld x %lld x %lld, %lld filters (%s)\n",
      all.ratio, all.ours, all.direct, forward.ratio, weight.ratio, data.ratio,
      static_cast<long long>(c.batch), static_cast<long long>(c.channels),
      static_cast<long long>(c.size), static_cast<long long>(c.size),
      static_cast<long long>(c.filters), c.where);
  std::fflush(stdout);
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  int rounds = 9;
  if (argc == 3 && !std::strcmp(argv[1], "--rounds")) rounds = std::max(1, std::atoi(argv[2]));
  fleet::HostDevice device;
  for (const fleet::Case& c : fleet::kCases) fleet::print(c, rounds, device);
}
