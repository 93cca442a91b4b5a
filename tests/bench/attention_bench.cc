// Attention on the CPU, forward and gradient, against its products alone (oneDNN's batched matrix
// products of the same sizes: Q Kᵀ and P V, and the five of the gradient), in turns on one thread.
// tests/bench/attention.sh runs it next to PyTorch.
//
//   bench_attention [--rounds N] [--case NAME] [--bf16] [--causal]
//
// Prints "NAME forward MS products MS gradient MS products MS ratio R R".
//
// Links: ops passes exec backend_cpu
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "tensor/float16.h"
#include "tensor/host.h"
#include "tests/bench/times.h"

namespace fleet {
namespace {

struct Case {
  int64_t tokens, heads, kv_heads;
  static constexpr int64_t kSize = 64;
  int64_t batch() const { return std::max<int64_t>(1, 1024 / tokens); }
  std::string name() const {
    return std::to_string(heads) + "/" + std::to_string(kv_heads) + "x" + std::to_string(kSize) +
           " S" + std::to_string(tokens);
  }
};

VarId drawn(Program& program, const std::string& name, const Shape& shape, DType dtype) {
  return program.state(name, shape, {}, dtype);
}

std::unique_ptr<Executor> make(Program program, std::vector<VarId> results, Device& device) {
  PlanOptions options;
  options.device = &device;
  auto executor = std::make_unique<Executor>(
      plan_program(std::move(program), std::move(results), options), device, nullptr);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (VarId id = 0; id < executor->program().var_count(); ++id) {
    const Var& var = executor->program().var(id);
    if (var.kind != VarKind::kState) continue;
    const auto fill = [&]<typename T>(T) {
      std::vector<T> values(static_cast<size_t>(var.shape.elements()));
      // Any lse near that of these inputs does.
      for (T& value : values) value = var.name == "lse" ? 8.0f : normal(random);
      executor->write(id, values);
    };
    var.dtype == DType::kBFloat16 ? fill(BFloat16()) : fill(float());
  }
  return executor;
}

std::unique_ptr<Executor> make_attention(const Case& c, DType dtype, bool causal, bool gradient,
                                         Device& device) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const Shape y{c.batch(), c.tokens, c.heads, Case::kSize};
  const VarId qkv =
      drawn(program, "qkv", {c.batch(), c.tokens, c.heads + 2 * c.kv_heads, Case::kSize}, dtype);
  const Attributes attributes = {{"kv_heads", c.kv_heads}, {"causal", causal}};
  if (!gradient) {
    const std::vector<VarId> outputs =
        program.emit(section, "attention", {qkv, kNoVar, kNoVar, kNoVar, kNoVar}, attributes);
    return make(std::move(program), outputs, device);
  }
  const VarId lse = program.state("lse", {c.batch(), c.heads, c.tokens}, {});
  const VarId dqkv = program.temporary("dqkv");
  program.append(section, "attention_grad",
                 {qkv, kNoVar, kNoVar, kNoVar, kNoVar, drawn(program, "y", y, dtype), lse,
                  drawn(program, "dy", y, dtype)},
                 {dqkv, kNoVar, kNoVar}, attributes);
  return make(std::move(program), {dqkv}, device);
}

// `scores` products with a result of [S, S] and `others` with one of [S, size], for each head.
std::unique_ptr<Executor> make_products(const Case& c, DType dtype, int scores, int others,
                                        Device& device) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const Shape shape{c.batch() * c.heads, c.tokens, Case::kSize};
  const VarId q = drawn(program, "q", shape, dtype), k = drawn(program, "k", shape, dtype);
  const VarId p = drawn(program, "p", {shape[0], c.tokens, c.tokens}, dtype);
  std::vector<VarId> results;
  for (int i = 0; i < scores; ++i) {
    results.push_back(program.emit(section, "matmul", {q, k}, {{"transpose_y", true}})[0]);
  }
  for (int i = 0; i < others; ++i) {
    // dk and dv read the transposed probabilities.
    results.push_back(program.emit(section, "matmul", {p, q}, {{"transpose_x", i % 2 == 1}})[0]);
  }
  return make(std::move(program), results, device);
}

double ms_of(Executor& executor) {
  const auto begin = std::chrono::steady_clock::now();
  executor.run({});
  executor.synchronize();
  return ms_since(begin);
}

void run(const Case& c, DType dtype, bool causal, int rounds, Device& device) {
  const std::unique_ptr<Executor> all[] = {
      make_attention(c, dtype, causal, false, device), make_products(c, dtype, 1, 1, device),
      make_attention(c, dtype, causal, true, device), make_products(c, dtype, 2, 3, device)};
  std::vector<double> times[4], ratios[2];
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    double ms[4];
    for (int i = 0; i < 4; ++i) ms[i] = ms_of(*all[i]);
    if (round < 0) continue;
    for (int i = 0; i < 4; ++i) times[i].push_back(ms[i]);
    for (int i = 0; i < 2; ++i) ratios[i].push_back(ms[2 * i + 1] / ms[2 * i]);
  }
  std::printf("%s forward %.3f products %.3f gradient %.3f products %.3f ratio %.3f %.3f\n",
              c.name().c_str(), median(times[0]), median(times[1]), median(times[2]),
              median(times[3]), median(ratios[0]), median(ratios[1]));
  std::fflush(stdout);
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  int rounds = 9;
  std::string only;
  bool causal = false;
  fleet::DType dtype = fleet::DType::kFloat32;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--bf16") {
      dtype = fleet::DType::kBFloat16;
    } else if (argument == "--causal") {
      causal = true;
    } else if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--case" && i + 1 < argc) {
      only = argv[++i];
    } else {
      std::fprintf(stderr, "unknown argument '%s'\n", argv[i]);
      return 2;
    }
  }
  fleet::HostDevice device;
  for (const int64_t tokens : {128, 512, 2048}) {
    for (const fleet::Case& c : {fleet::Case{tokens, 12, 12}, fleet::Case{tokens, 9, 3}}) {
      if (only.empty() || only == c.name()) fleet::run(c, dtype, causal, rounds, device);
    }
  }
}
