// attention (Vaswani et al. 2017): for each head, y = dropout(softmax(scale q kᵀ)) v, without the
// matrix of scores in memory (Dao et al., FlashAttention, 2022).
//
// q [B, S, H, D]; k and v [B, S, Hkv, D], where H is a multiple of Hkv: head h reads key head
// h / (H / Hkv) (grouped queries). Without k and v, q is packed: [B, S, H + 2 Hkv, D] with the
// heads of q, then those of k, then those of v; its gradient is one tensor, too. y [B, S, H, D].
// lse, float32 [B, H, S], is the logarithm of the sum of exponentials of each row, for the
// gradient.
//
// A query sees the keys of all tokens; with causal those up to itself, with a window w > 0 of them
// those after q - w, with document_ids (int64 [B, S]) those of its own document. A token always
// sees itself.
//
// dropout p zeroes probabilities and divides the others by 1 - p. The mask depends on
// (sample_key[b], salt, head, query, key) alone (ops/attention.h). Each attention of a network has
// its own salt.
#include "ops/attention.h"

#include <cmath>

#include "ops/arithmetic.h"
#include "ops/mixed_precision.h"

namespace fleet {

AttentionSizes attention_sizes(const Attributes& attributes, const Shape& q, const Shape* k) {
  AttentionSizes sizes{.batch = q[0],
                       .tokens = q[1],
                       .heads = q[2],
                       .kv_heads = q[2],
                       .size = q[3],
                       .packed = k == nullptr};
  if (k) {
    sizes.kv_heads = (*k)[2];
  } else {
    const int64_t kv_heads = attributes.integer("kv_heads");
    sizes.kv_heads = kv_heads ? kv_heads : q[2] / 3;
    sizes.heads = q[2] - 2 * sizes.kv_heads;
  }
  return sizes;
}

AttentionSettings attention_settings(const Attributes& attributes, int64_t size) {
  const double p = attributes.number("dropout"), scale = attributes.number("scale");
  return {
      .causal = attributes.boolean("causal"),
      .window = attributes.integer("window"),
      .scale = static_cast<float>(scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size))),
      .drop_threshold = dropout_threshold(p),
      .salt = static_cast<uint64_t>(attributes.integer("salt")),
      .keep_scale = static_cast<float>(1 / (1 - p))};
}

namespace {

const std::map<std::string, Attribute> kAttentionAttributes = {
    {"causal", false}, {"window", int64_t{0}},   {"scale", 0.0},
    {"dropout", 0.0},  {"kv_heads", int64_t{0}}, {"salt", int64_t{0}}};

enum AttentionInput { kQ, kK, kV, kDocuments, kSampleKey };

void require_attributes(ShapeContext& context) {
  const Attributes& attributes = context.attributes();
  const int64_t window = attributes.integer("window");
  context.require(window >= 0, "window = " + std::to_string(window) + " is negative; 0 is none");
  context.require(window == 0 || attributes.boolean("causal"),
                  "a window needs causal: it ends at the query");
  const double scale = attributes.number("scale"), p = attributes.number("dropout");
  context.require(scale >= 0, "scale = " + std::to_string(scale) +
                                  " is negative; 0 stands for 1 / sqrt(size of a head)");
  context.require(p >= 0 && p < 1, "dropout = " + std::to_string(p) + " is not within [0, 1)");
}

void require_heads(ShapeContext& context) {
  const Shape& q = context.shape(kQ);
  context.require(q.rank() == 4, "q " + q.text() + " is not [batch, tokens, heads, size]");
  const int64_t kv_heads = context.attributes().integer("kv_heads");
  context.require(kv_heads >= 0, "kv_heads = " + std::to_string(kv_heads) + " is negative");
  const bool separate = context.has_input(kK);
  context.require(separate == context.has_input(kV), "it takes both k and v, or a packed q alone");
  if (separate) {
    const Shape &k = context.shape(kK), &v = context.shape(kV);
    const bool fits = k.rank() == 4 && k == v && k[0] == q[0] && k[1] == q[1] && k[3] == q[3];
    context.require(fits, "k " + k.text() + " and v " + v.text() + " do not fit q " + q.text());
    context.require(kv_heads == 0 || kv_heads == k[2],
                    "kv_heads = " + std::to_string(kv_heads) + ", but k is " + k.text());
  } else {
    context.require(kv_heads > 0 ? q[2] > 2 * kv_heads : q[2] % 3 == 0,
                    "a packed q " + q.text() + " does not hold heads of q, k and v with kv_heads " +
                        std::to_string(kv_heads));
  }
  const Shape k = separate ? context.shape(kK) : Shape();
  const AttentionSizes sizes = attention_sizes(context.attributes(), q, separate ? &k : nullptr);
  context.require(sizes.kv_heads > 0 && sizes.heads % sizes.kv_heads == 0,
                  std::to_string(sizes.heads) + " heads are not a multiple of " +
                      std::to_string(sizes.kv_heads) + " heads of keys");
  context.require(sizes.tokens < kMostAttentionTokens && sizes.heads < kMostAttentionTokens,
                  "more than 2^21 tokens or heads");
}

void require_tokens(ShapeContext& context) {
  const Shape& q = context.shape(kQ);
  if (context.has_input(kDocuments)) {
    context.require(context.shape(kDocuments) == Shape{q[0], q[1]} &&
                        context.dtype(kDocuments) == DType::kInt64,
                    "document_ids is not int64" + Shape{q[0], q[1]}.text());
  }
  if (context.attributes().number("dropout") > 0) {
    context.require(context.has_input(kSampleKey), "dropout needs the input sample_key");
    context.require(
        context.shape(kSampleKey) == Shape{q[0]} && context.dtype(kSampleKey) == DType::kInt64,
        "sample_key is not int64" + Shape{q[0]}.text());
  }
}

AttentionSizes sizes_of(ShapeContext& context) {
  const bool separate = context.has_input(kK);
  return attention_sizes(context.attributes(), context.shape(kQ),
                         separate ? &context.shape(kK) : nullptr);
}

void infer_attention(ShapeContext& context) {
  require_attributes(context);
  require_heads(context);
  require_tokens(context);
  const AttentionSizes sizes = sizes_of(context);
  context.set(0, {sizes.batch, sizes.tokens, sizes.heads, sizes.size}, context.dtype(kQ));
  context.set(1, {sizes.batch, sizes.heads, sizes.tokens}, DType::kFloat32);
}

void attention_gradient(GradientContext& context) {
  context.require(context.output(1) != kNoVar, "attention needs lse for its gradient");
  std::vector<VarId> inputs;
  for (int i = kQ; i <= kSampleKey; ++i) inputs.push_back(context.input(i));
  inputs.insert(inputs.end(), {context.output(0), context.output(1), context.output_gradient(0)});
  const bool separate = context.input(kK) != kNoVar;
  context.append("attention_grad", inputs,
                 {context.input_gradient(kQ), separate ? context.input_gradient(kK) : kNoVar,
                  separate ? context.input_gradient(kV) : kNoVar},
                 context.attributes());
}

// Of `products` products of the scores' size. Tokens that a mask excludes count, except half of
// the scores where it is causal.
double operations_of_products(const Program& program, const Op& op, int products) {
  const bool packed = op.inputs[kK] == kNoVar;
  const Shape k = packed ? Shape() : shape_of(program, op.inputs[kK]);
  const AttentionSizes sizes =
      attention_sizes(op.attributes, shape_of(program, op.inputs[kQ]), packed ? nullptr : &k);
  const double scores = static_cast<double>(sizes.batch * sizes.heads * sizes.tokens) *
                        static_cast<double>(sizes.tokens) *
                        (op.attributes.boolean("causal") ? 0.5 : 1);
  return 2 * products * scores * static_cast<double>(sizes.size);
}
double attention_operations(const Program& program, const Op& op) {
  return operations_of_products(program, op, 2);
}
double attention_grad_operations(const Program& program, const Op& op) {
  return operations_of_products(program, op, 5);
}

}  // namespace

FLEET_OP(attention) {
  def.help =
      "softmax(scale q k^T) v for each head, with q [batch, tokens, heads, size] and k, v of as "
      "many or fewer heads; without k and v, q holds the heads of all three (kv_heads of k and of "
      "v); causal, window and document_ids say which keys a query sees; dropout drops "
      "probabilities by sample_key and salt";
  def.inputs = {{"q"},
                {"k", Slot::kOptional},
                {"v", Slot::kOptional},
                {"document_ids", Slot::kOptional, true},
                {"sample_key", Slot::kOptional, true}};
  def.outputs = {{"y"}, {"lse", Slot::kOptional}};
  def.attributes = kAttentionAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<Arithmetic>().operations = attention_operations;
  def.infer = infer_attention;
  def.gradient = attention_gradient;
}

// With P the probabilities, M the mask of dropout / (1 - p) and delta = the sum of dy y of a row:
// dv = (P M)ᵀ dy, dS = P (M (dy vᵀ) - delta), dq = scale dS k, dk = scale dSᵀ q. P is computed
// again from lse.
FLEET_OP(attention_grad) {
  def.inputs = {{"q"},
                {"k", Slot::kOptional},
                {"v", Slot::kOptional},
                {"document_ids", Slot::kOptional, true},
                {"sample_key", Slot::kOptional, true},
                {"y"},
                {"lse"},
                {"dy"}};
  def.outputs = {{"dq", Slot::kOptional}, {"dk", Slot::kOptional}, {"dv", Slot::kOptional}};
  def.attributes = kAttentionAttributes;
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
  def.add_trait<MixedPrecision>().float32_inputs = {6};
  def.add_trait<Arithmetic>().operations = attention_grad_operations;
  def.infer = [](ShapeContext& context) {
    context.set_like(0, kQ);
    for (int o = 1; o < 3; ++o) {
      if (context.has_output(o)) context.set_like(o, o);
    }
  };
}

}  // namespace fleet
