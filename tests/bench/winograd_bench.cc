// 3 x 3 convolutions, forward and both gradients, by Winograd's method (where the engine takes it)
// against the direct one, in turns: shapes of well-known networks, and those at the edges of the
// rule (lib/engine/backend/cpu/convolution.h).
//
//   bench_winograd [--rounds N]
//
// Links: ops passes exec backend_cpu
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
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
    {64, 32, 16, 32, "resnet20"},     {64, 64, 8, 64, "resnet20"},
    {16, 64, 56, 64, "resnet50"},     {16, 128, 28, 128, "resnet50"},
    {16, 256, 14, 256, "resnet50"},   {16, 512, 7, 512, "resnet50"},
    {16, 128, 14, 32, "densenet121"}, {8, 256, 56, 256, "vgg16"},
    {64, 16, 32, 16, "few channels"}, {1, 512, 7, 512, "4 tiles"},
    {2, 256, 14, 256, "32 tiles"},    {64, 512, 2, 512, "tiles used by a quarter"},
    {64, 128, 5, 128, "by 39 %"},     {64, 128, 6, 128, "by 56 %"},
};

std::unique_ptr<Executor> make(const Case& c, bool winograd, Device& device) {
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
  const std::vector<VarId> results = {program.gradient(x), program.gradient(w)};
  PlanOptions options;
  options.device = &device;
  auto executor = std::make_unique<Executor>(plan_program(std::move(program), results, options),
                                             device, nullptr);
  executor->initialize(1);
  executor->run({});
  executor->synchronize();
  return executor;
}

double ms_of(Executor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  executor.run({});
  executor.synchronize();
  return ms_since(begin);
}

void compare(const Case& c, int rounds, Device& device) {
  const auto ours = make(c, true, device), direct = make(c, false, device);
  std::vector<double> our_times, direct_times, ratios;
  for (int i = 0; i < rounds; ++i) {
    our_times.push_back(ms_of(*ours));
    direct_times.push_back(ms_of(*direct));
    ratios.push_back(direct_times.back() / our_times.back());
  }
  std::printf(
      "winograd: ratio %.2f (ours %.2f ms, direct %.2f ms) %lld x %lld x %lld x %lld, %lld filters "
      "(%s)\n",
      median(ratios), median(our_times), median(direct_times), static_cast<long long>(c.batch),
      static_cast<long long>(c.channels), static_cast<long long>(c.size),
      static_cast<long long>(c.size), static_cast<long long>(c.filters), c.where);
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  int rounds = 9;
  if (argc == 3 && !std::strcmp(argv[1], "--rounds")) rounds = std::max(1, std::atoi(argv[2]));
  fleet::HostDevice device;
  for (const fleet::Case& c : fleet::kCases) fleet::compare(c, rounds, device);
}
