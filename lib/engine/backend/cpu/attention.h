// The attention of this backend: what its loops take, and the instruction sets that they are
// compiled for (attention_loops.inc).
//
// Sums run in a fixed order: results do not depend on the number of threads. They do depend on the
// instruction set, and in bfloat16 on whether the processor multiplies it.
#pragma once

#include <cstdint>

#include "tensor/dtype.h"

namespace fleet::cpu {

// One call, on plain tensors. Tokens of q and dq are q_stride elements apart, those of k, v, dk and
// dv kv_stride; the heads of a token are next to each other. y and dy are [batch, tokens, heads,
// size], lse and delta float32 [batch, heads, tokens].
struct Attention {
  int64_t batch = 0, tokens = 0, heads = 0, kv_heads = 0, size = 0;
  int64_t q_stride = 0, kv_stride = 0;
  bool causal = false;
  int64_t window = 0;  // 0: none
  float scale = 1;     // factor of the scores; positive
  // Dropout (ops/attention.h); threshold 0: none.
  uint64_t drop_threshold = 0, salt = 0;
  float keep_scale = 1;
  const void *q = nullptr, *k = nullptr, *v = nullptr;
  const int64_t *documents = nullptr, *sample_keys = nullptr;  // null: none
  void* y = nullptr;
  float* lse = nullptr;  // null: not kept
  // The gradient reads y and lse, too. Results that are null are not computed.
  const void* dy = nullptr;
  void *dq = nullptr, *dk = nullptr, *dv = nullptr;
  void* workspace = nullptr;  // attention_workspace() bytes

  int64_t group() const { return heads / kv_heads; }
};

// Bytes for the call in either direction.
int64_t attention_workspace(const Attention& attention, bool gradient);

using AttentionRun = void (*)(const Attention&);
struct AttentionRuns {
  AttentionRun forward = nullptr, gradient = nullptr;
};

// Of elements of the type (float32, bfloat16). Null where this build or the instruction set does
// not have it.
namespace baseline {
AttentionRuns attention_runs(DType type);
}
namespace avx2 {
AttentionRuns attention_runs(DType type);
}
namespace avx512 {
AttentionRuns attention_runs(DType type);
}
namespace avx512_bf16 {
AttentionRuns attention_runs(DType type);
}

// The fastest on this processor.
AttentionRuns best_attention_runs(DType type);
// Those of an instruction set by its namespace's name, for tests; null if the processor lacks it.
AttentionRuns attention_runs_of(const char* isa, DType type);

}  // namespace fleet::cpu
