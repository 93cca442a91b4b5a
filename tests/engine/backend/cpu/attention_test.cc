// Attention's loops of each instruction set, directly.
#include "backend/cpu/attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <random>
#include <vector>

#include "ops/attention.h"
#include "tensor/float16.h"

namespace fleet::cpu {
namespace {

constexpr const char* kIsas[] = {"baseline", "avx2", "avx512", "avx512_bf16"};

struct Outputs {
  std::vector<float> y, lse, dq;
  bool operator==(const Outputs&) const = default;
};

// A packed attention with grouped queries, two documents and dropout: outputs as float.
template <typename T>
Outputs outputs_of(const AttentionRuns& runs, int threads) {
  constexpr int64_t kBatch = 2, kTokens = 201, kHeads = 4, kKvHeads = 2, kSize = 20;
  constexpr int64_t kRow = (kHeads + 2 * kKvHeads) * kSize;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<T> x(kBatch * kTokens * kRow), y(kBatch * kTokens * kHeads * kSize), dy = y, dx = x;
  for (T& value : x) value = normal(random);
  for (T& value : dy) value = normal(random);
  std::vector<int64_t> documents(kBatch * kTokens), keys = {3, 4};
  for (int64_t t = 0; t < kBatch * kTokens; ++t) documents[t] = t % kTokens < 77 ? 1 : 2;
  std::vector<float> lse(kBatch * kHeads * kTokens);
  Attention a{.batch = kBatch,
              .tokens = kTokens,
              .heads = kHeads,
              .kv_heads = kKvHeads,
              .size = kSize,
              .q_stride = kRow,
              .kv_stride = kRow,
              .causal = true,
              .scale = 0.25f,
              .drop_threshold = dropout_threshold(0.1),
              .salt = 2,
              .keep_scale = 1 / 0.9f,
              .q = x.data(),
              .k = x.data() + kHeads * kSize,
              .v = x.data() + (kHeads + kKvHeads) * kSize,
              .documents = documents.data(),
              .sample_keys = keys.data(),
              .y = y.data(),
              .lse = lse.data(),
              .dy = dy.data(),
              .dq = dx.data(),
              .dk = dx.data() + kHeads * kSize,
              .dv = dx.data() + (kHeads + kKvHeads) * kSize};
  std::vector<float> workspace(
      std::max(attention_workspace(a, false), attention_workspace(a, true)) / 4 + 16);
  a.workspace = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) / 4;
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  runs.forward(a);
  runs.gradient(a);
  omp_set_num_threads(before);
  return {{y.begin(), y.end()}, lse, {dx.begin(), dx.end()}};
}

template <typename T>
void expect_same_for_threads() {
  for (const char* isa : kIsas) {
    SCOPED_TRACE(isa);
    const AttentionRuns runs = attention_runs_of(isa, DTypeOf<T>::value);
    if (!runs.forward) continue;  // not on this processor
    const Outputs one = outputs_of<T>(runs, 1);
    EXPECT_EQ(one, outputs_of<T>(runs, 2));
    EXPECT_EQ(one, outputs_of<T>(runs, 5));
  }
}

TEST(CpuAttention, MoreThreads_GiveTheSameBits) {
  expect_same_for_threads<float>();
  expect_same_for_threads<BFloat16>();
}

void expect_near(const std::vector<float>& got, const std::vector<float>& want, float tolerance) {
  float largest = 0, difference = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    difference = std::max(difference, std::abs(got[i] - want[i]));
  }
  EXPECT_LE(difference, tolerance * largest);
}

TEST(CpuAttention, InstructionSets_Agree) {
  const Outputs exact = outputs_of<float>(attention_runs_of("baseline", DType::kFloat32), 1);
  const Outputs rounded = outputs_of<BFloat16>(attention_runs_of("baseline", DType::kBFloat16), 1);
  for (const char* isa : kIsas) {
    SCOPED_TRACE(isa);
    const AttentionRuns single = attention_runs_of(isa, DType::kFloat32);
    if (!single.forward) continue;
    const Outputs outputs = outputs_of<float>(single, 1);
    expect_near(outputs.y, exact.y, 1e-5f);
    expect_near(outputs.lse, exact.lse, 1e-5f);
    expect_near(outputs.dq, exact.dq, 1e-5f);
    const Outputs low = outputs_of<BFloat16>(attention_runs_of(isa, DType::kBFloat16), 1);
    expect_near(low.y, rounded.y, 0.01f);
    expect_near(low.dq, rounded.dq, 0.01f);
  }
}

}  // namespace
}  // namespace fleet::cpu
