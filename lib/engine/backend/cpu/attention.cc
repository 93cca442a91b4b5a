#include "backend/cpu/attention.h"

#include <array>
#include <string_view>

#include "backend/cpu/attention_memory.h"
#include "base/cpu.h"
#include "exec/kernel.h"
#include "ops/attention.h"

namespace fleet {
namespace cpu {
namespace {

struct AttentionIsa {
  const char* name;
  AttentionRuns (*runs)(DType);
  bool available;
};

// The fastest first.
const std::array<AttentionIsa, 4>& attention_isas() {
  static const bool avx512 = FLEET_X86_HAS("avx512f") && FLEET_X86_HAS("avx512bw") &&
                             FLEET_X86_HAS("avx512dq") && FLEET_X86_HAS("avx512vl");
  static const std::array<AttentionIsa, 4> isas = {{
      {"avx512_bf16", avx512_bf16::attention_runs, avx512 && FLEET_X86_HAS("avx512bf16")},
      {"avx512", avx512::attention_runs, avx512},
      {"avx2", avx2::attention_runs, FLEET_X86_HAS("avx2") && FLEET_X86_HAS("fma")},
      {"baseline", baseline::attention_runs, true},
  }};
  return isas;
}

}  // namespace

AttentionRuns attention_runs_of(const char* isa, DType type) {
  for (const AttentionIsa& one : attention_isas()) {
    if (one.available && std::string_view(one.name) == isa) return one.runs(type);
  }
  return {};
}

AttentionRuns best_attention_runs(DType type) {
  for (const AttentionIsa& one : attention_isas()) {
    const AttentionRuns runs = one.available ? one.runs(type) : AttentionRuns();
    if (runs.forward) return runs;
  }
  return {};
}

// A bound for every instruction set: tokens and elements padded to whole vectors.
int64_t attention_workspace(const Attention& a, bool gradient) {
  AttentionParts parts(nullptr);
  const DocumentRanges documents(a, parts);
  const auto padded = [](int64_t value) { return (value + 63) / 64 * 64; };
  if (!gradient) {
    parts.take<float>(a.batch * a.kv_heads * padded(a.tokens) * a.size);
    parts.take<float>(a.batch * a.kv_heads * a.tokens * padded(a.size));
  } else if (a.group() > 1) {
    parts.take<float>(a.batch * a.heads * 2 * a.tokens * a.size);
  }
  return parts.bytes();
}

namespace {

enum AttentionArgument { kQ, kK, kV, kDocuments, kSampleKey, kY, kLse, kDy };

Attention attention_of(const Attributes& attributes, const Shape& q, const Shape* k) {
  const AttentionSizes sizes = attention_sizes(attributes, q, k);
  const AttentionSettings settings = attention_settings(attributes, sizes.size);
  return {.batch = sizes.batch,
          .tokens = sizes.tokens,
          .heads = sizes.heads,
          .kv_heads = sizes.kv_heads,
          .size = sizes.size,
          .q_stride = sizes.q_stride(),
          .kv_stride = sizes.kv_stride(),
          .causal = settings.causal,
          .window = settings.window,
          .scale = settings.scale,
          .drop_threshold = settings.drop_threshold,
          .salt = settings.salt,
          .keep_scale = settings.keep_scale};
}

// The heads of k and v within a packed q.
struct PackedHeads {
  std::byte *k, *v;
  PackedHeads(const Attention& a, const Argument& q) {
    const auto bytes = static_cast<int64_t>(size_of(q.dtype)) * a.size;
    k = q.as<std::byte>() + a.heads * bytes;
    v = k + a.kv_heads * bytes;
  }
};

Attention inputs_of(const KernelContext& context) {
  const Argument &q = context.inputs[kQ], &k = context.inputs[kK];
  Attention a = attention_of(context.attributes(), q.shape, k ? &k.shape : nullptr);
  a.q = q.data;
  a.k = k.data;
  a.v = context.inputs[kV].data;
  if (!k) {
    const PackedHeads heads(a, q);
    a.k = heads.k;
    a.v = heads.v;
  }
  a.documents = context.inputs[kDocuments].as<const int64_t>();
  a.sample_keys = context.inputs[kSampleKey].as<const int64_t>();
  a.workspace = context.workspace;
  return a;
}

void ask_workspace(LayoutQuery& query, bool gradient) {
  const bool separate = query.has_input(kK);
  Attention a = attention_of(query.attributes(), query.input_var(kQ).shape,
                             separate ? &query.input_var(kK).shape : nullptr);
  static const int64_t some = 0;
  if (query.has_input(kDocuments)) a.documents = &some;  // only whether there are any
  query.workspace(static_cast<size_t>(attention_workspace(a, gradient)));
}

}  // namespace
}  // namespace cpu

FLEET_KERNEL(cpu, attention) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16};
  def.layouts = [](LayoutQuery& query) { cpu::ask_workspace(query, /*gradient=*/false); };
  def.create = [](KernelContext& context) {
    cpu::Attention a = cpu::inputs_of(context);
    a.y = context.outputs[0].data;
    a.lse = context.outputs[1].as<float>();
    const cpu::AttentionRun run = cpu::best_attention_runs(context.inputs[0].dtype).forward;
    return make_kernel([=](Stream&) { run(a); });
  };
}

FLEET_KERNEL(cpu, attention_grad) {
  def.dtypes = {DType::kFloat32, DType::kBFloat16};
  def.layouts = [](LayoutQuery& query) { cpu::ask_workspace(query, /*gradient=*/true); };
  def.create = [](KernelContext& context) {
    cpu::Attention a = cpu::inputs_of(context);
    a.y = context.inputs[cpu::kY].data;
    a.lse = context.inputs[cpu::kLse].as<float>();
    a.dy = context.inputs[cpu::kDy].data;
    const Argument& dq = context.outputs[0];
    a.dq = dq.data;
    a.dk = context.outputs[1].data;
    a.dv = context.outputs[2].data;
    if (!context.inputs[cpu::kK] && dq) {
      const cpu::PackedHeads heads(a, dq);
      a.dk = heads.k;
      a.dv = heads.v;
    }
    const cpu::AttentionRun run = cpu::best_attention_runs(context.inputs[0].dtype).gradient;
    return make_kernel([=](Stream&) { run(a); });
  };
}

}  // namespace fleet
