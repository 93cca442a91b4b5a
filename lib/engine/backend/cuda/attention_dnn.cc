#include "backend/cuda/attention_dnn.h"

#include "backend/cuda/device.h"
#include "backend/cuda/dnn_attention.h"
#include "ops/attention.h"

namespace fleet::cuda {
namespace {

using dnn::Attention;

enum Input { kQ, kK, kV, kDocuments, kSampleKey, kY, kLse, kDy };

// Empty: not for cuDNN.
std::optional<Attention> problem_of(const Attributes& attributes, const Shape& q, const Shape* k,
                                    DType dtype, bool documents, bool gradient) {
  constexpr int64_t kLongestHead = 128;
  const AttentionSizes sizes = attention_sizes(attributes, q, k);
  const AttentionSettings settings = attention_settings(attributes, sizes.size);
  if (dtype == DType::kFloat32 || sizes.size % 8 != 0 || sizes.size > kLongestHead) return {};
  if (settings.window || settings.drop_threshold) return {};
  return Attention{.batch = sizes.batch,
                   .tokens = sizes.tokens,
                   .heads = sizes.heads,
                   .kv_heads = sizes.kv_heads,
                   .size = sizes.size,
                   .q_stride = sizes.q_stride(),
                   .kv_stride = sizes.kv_stride(),
                   .causal = settings.causal,
                   .documents = documents,
                   .gradient = gradient,
                   .dtype = dtype};
}

// Scratch memory that the graph does not count as its own.
struct Scratch {
  size_t ids = 0, delta = 0, dq_sum = 0;
  explicit Scratch(const Attention& a) {
    const auto bytes = [](int64_t elements) {
      return static_cast<size_t>(elements + 63) / 64 * 64 * sizeof(float);
    };
    if (a.documents) ids = bytes(a.batch * a.tokens);
    if (!a.gradient) return;
    delta = bytes(a.batch * a.tokens * a.heads);
    dq_sum = bytes(a.batch * a.tokens * a.heads * a.size);
  }
  size_t bytes() const { return ids + delta + dq_sum; }
};

// Of the gradient: cuDNN computes all of its results.
bool wants_all(bool packed, bool dq, bool dk, bool dv) { return dq && (packed || (dk && dv)); }

}  // namespace

std::optional<size_t> attention_dnn_workspace(LayoutQuery& query, bool gradient) {
  const bool packed = !query.has_input(kK);
  const auto problem = problem_of(query.attributes(), query.input_var(kQ).shape,
                                  packed ? nullptr : &query.input_var(kK).shape,
                                  query.input_var(kQ).dtype, query.has_input(kDocuments), gradient);
  if (!problem || !dnn::is_supported(query.device(), *problem)) return {};
  if (gradient ? !wants_all(packed, query.has_output(0), query.has_output(1), query.has_output(2))
               : !query.has_output(1)) {
    return {};
  }
  return Scratch(*problem).bytes() + dnn::workspace_of(query.device(), *problem);
}

std::unique_ptr<Kernel> make_attention_dnn(KernelContext& context, bool gradient) {
  const auto& in = context.inputs;
  const auto& out = context.outputs;
  const bool packed = !in[kK];
  const auto problem =
      problem_of(context.attributes(), in[kQ].shape, packed ? nullptr : &in[kK].shape, in[kQ].dtype,
                 static_cast<bool>(in[kDocuments]), gradient);
  if (!problem || !dnn::is_supported(&context.device, *problem)) return nullptr;
  if (gradient ? !wants_all(packed, out[0].data, out[1].data, out[2].data) : !out[1]) {
    return nullptr;
  }
  const AttentionSizes sizes =
      attention_sizes(context.attributes(), in[kQ].shape, packed ? nullptr : &in[kK].shape);
  const size_t element = size_of(in[kQ].dtype);
  const auto k_of = [&](const Argument& q, const Argument& k) -> void* {
    return packed ? q.as<std::byte>() + sizes.k_offset() * element : k.data;
  };
  const auto v_of = [&](const Argument& q, const Argument& v) -> void* {
    return packed ? q.as<std::byte>() + sizes.v_offset() * element : v.data;
  };
  const Scratch scratch(*problem);
  auto* ids = static_cast<std::byte*>(context.workspace);
  std::byte *delta = ids + scratch.ids, *dq_sum = delta + scratch.delta;
  std::vector<std::pair<int64_t, void*>> memory = {
      {dnn::kAttentionQ, in[kQ].data},
      {dnn::kAttentionK, k_of(in[kQ], in[kK])},
      {dnn::kAttentionV, v_of(in[kQ], in[kV])},
      {dnn::kAttentionY, gradient ? in[kY].data : out[0].data},
      {dnn::kAttentionLse, gradient ? in[kLse].data : out[1].data}};
  if (problem->documents) {
    memory.insert(memory.end(),
                  {{dnn::kAttentionQueryDocuments, ids}, {dnn::kAttentionKeyDocuments, ids}});
  }
  if (gradient) {
    memory.insert(memory.end(), {{dnn::kAttentionDy, in[kDy].data},
                                 {dnn::kAttentionDelta, delta},
                                 {dnn::kAttentionDqSum, dq_sum},
                                 {dnn::kAttentionDq, out[0].data},
                                 {dnn::kAttentionDk, k_of(out[0], out[1])},
                                 {dnn::kAttentionDv, v_of(out[0], out[2])}});
  }
  const float scale = attention_settings(context.attributes(), sizes.size).scale;
  std::shared_ptr<Kernel> kernel =
      dnn::make_kernel(context.device, *problem, scale, memory, ids + scratch.bytes());
  const auto* documents = in[kDocuments].as<const int64_t>();
  return make_kernel([kernel, documents, ids = reinterpret_cast<int32_t*>(ids),
                      count = problem->batch * problem->tokens](Stream& stream) {
    if (documents) narrow_ids(count, documents, ids, stream_of(stream));
    kernel->run(stream);
  });
}

}  // namespace fleet::cuda
