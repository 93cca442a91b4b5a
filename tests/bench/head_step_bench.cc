// The head of a language model and its loss, forward and backward, against its three products alone
// as three operations, in turns. For scripts/bench.sh head.
// Usage: bench_head_step ROWS DEPTH CLASSES float32|bfloat16 CHUNK ROUNDS
// Prints "head SECONDS products SECONDS workspace BYTES arena BYTES peak BYTES": medians of the
// processor's seconds; peak is the growth of the process's memory while the head runs.
//
// Links: ops passes exec backend_cpu
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "passes/backward.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

size_t peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

struct Sizes {
  int64_t rows, depth, classes, chunk;
  DType dtype;
};

struct Contender {
  std::unique_ptr<Executor> executor;
  size_t workspace = 0, arena = 0;
  std::vector<double> seconds = {};

  void run() {
    const double begin = processor_seconds();
    executor->run({});
    executor->synchronize();
    seconds.push_back(processor_seconds() - begin);
  }
};

void write(Executor& executor, VarId id, DType dtype, int64_t count) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 1013) / 5000 - 0.1f;
  if (dtype == DType::kFloat32) return executor.write(id, values);
  std::vector<BFloat16> narrow(count);
  for (int64_t i = 0; i < count; ++i) narrow[i] = values[i];
  executor.write(id, narrow);
}

Contender make(Program program, const std::vector<VarId>& keep, Device& device) {
  Plan plan = plan_program(std::move(program), keep, {.device = &device});
  Contender made{.workspace = plan.workspace_bytes[0], .arena = plan.arena_bytes};
  made.executor = std::make_unique<Executor>(std::move(plan), device, nullptr);
  return made;
}

Contender make_head(const Sizes& sizes, Device& device) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId hidden = program.feed("hidden", sizes.dtype, {sizes.rows, sizes.depth});
  const VarId head = program.feed("head", sizes.dtype, {sizes.classes, sizes.depth});
  const VarId labels = program.feed("labels", DType::kInt64, {sizes.rows});
  const VarId weight = program.feed("row_weight", DType::kFloat32, {sizes.rows});
  const VarId seed = program.feed("seed", DType::kFloat32, {1});
  const VarId loss = program.emit(forward, "linear_cross_entropy", {hidden, head, labels, weight},
                                  {{"chunk", sizes.chunk}})[0];
  append_backward_from(program, forward, {{loss, seed}}, {hidden, head});
  const std::vector<VarId> keep = {loss, program.gradient(hidden), program.gradient(head)};
  Contender made = make(std::move(program), keep, device);
  Executor& executor = *made.executor;
  write(executor, hidden, sizes.dtype, sizes.rows * sizes.depth);
  write(executor, head, sizes.dtype, sizes.classes * sizes.depth);
  std::vector<int64_t> targets(sizes.rows);
  for (int64_t n = 0; n < sizes.rows; ++n) targets[n] = n * 7919 % sizes.classes;
  executor.write(labels, targets);
  executor.write(weight, std::vector<float>(sizes.rows, 1));
  // As in training, where the loss is divided by the number of tokens.
  executor.write(seed, std::vector<float>{1 / static_cast<float>(sizes.rows)});
  return made;
}

Contender make_products(const Sizes& sizes, Device& device) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId hidden = program.feed("hidden", sizes.dtype, {sizes.rows, sizes.depth});
  const VarId head = program.feed("head", sizes.dtype, {sizes.classes, sizes.depth});
  const VarId logits = program.emit(section, "matmul", {hidden, head}, {{"transpose_y", true}})[0];
  const VarId dhidden = program.emit(section, "matmul", {logits, head})[0];
  const VarId dhead = program.emit(section, "matmul", {logits, hidden}, {{"transpose_x", true}})[0];
  Contender made = make(std::move(program), {dhidden, dhead}, device);
  write(*made.executor, hidden, sizes.dtype, sizes.rows * sizes.depth);
  write(*made.executor, head, sizes.dtype, sizes.classes * sizes.depth);
  return made;
}

int run(const Sizes& sizes, int rounds) {
  HostDevice device;
  const size_t before = peak_bytes();
  Contender head = make_head(sizes, device);
  head.run();
  const size_t peak = peak_bytes() - before;
  Contender products = make_products(sizes, device);
  products.run();
  head.seconds.clear();
  products.seconds.clear();
  for (int round = 0; round < rounds; ++round) {
    head.run();
    products.run();
  }
  std::printf("head %.6f products %.6f workspace %zu arena %zu peak %zu\n", median(head.seconds),
              median(products.seconds), head.workspace, head.arena, peak);
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr,
                 "usage: bench_head_step ROWS DEPTH CLASSES float32|bfloat16 CHUNK ROUNDS\n");
    return 2;
  }
  return fleet::run({.rows = std::atoll(argv[1]),
                     .depth = std::atoll(argv[2]),
                     .classes = std::atoll(argv[3]),
                     .chunk = std::atoll(argv[5]),
                     .dtype = fleet::to_dtype(argv[4])},
                    std::atoi(argv[6]));
}
