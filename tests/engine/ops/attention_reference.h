// Naive attention in double, for tests.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "ops/attention.h"
#include "tests/engine/ops/op_check.h"

namespace fleet {

struct AttentionCase {
  int64_t batch = 1, tokens = 4, heads = 1, kv_heads = 1, size = 4;
  bool packed = false, causal = false;
  int64_t window = 0;
  double scale = 0, dropout = 0;
  Values documents = {};  // of all tokens; empty: none
  Values keys = {};       // of the samples; empty: none
  int64_t salt = 5;

  Attributes attributes() const {
    Attributes all = {{"causal", causal},
                      {"window", window},
                      {"scale", scale},
                      {"dropout", dropout},
                      {"salt", salt}};
    if (packed) all.set("kv_heads", kv_heads);
    return all;
  }
  Shape q_shape() const { return {batch, tokens, packed ? heads + 2 * kv_heads : heads, size}; }
  Shape kv_shape() const { return {batch, tokens, kv_heads, size}; }
  Shape y_shape() const { return {batch, tokens, heads, size}; }
  double used_scale() const {
    return scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(size));
  }

  // Elements of a head of a token in q, k or v (0, 1, 2) as an argument of the operation: the input
  // and the offset.
  struct Place {
    int input;
    int64_t offset;
  };
  Place place(int which, int64_t b, int64_t token, int64_t head) const {
    if (!packed) {
      return {which, ((b * tokens + token) * (which ? kv_heads : heads) + head) * size};
    }
    const int64_t first = which == 0 ? 0 : heads + (which - 1) * kv_heads;
    return {0, ((b * tokens + token) * (heads + 2 * kv_heads) + first + head) * size};
  }
  bool sees(int64_t b, int64_t query, int64_t key) const {
    if (causal && key > query) return false;
    if (window && key <= query - window) return false;
    return documents.empty() || documents[b * tokens + query] == documents[b * tokens + key];
  }
  double drop_factor(int64_t b, int64_t head, int64_t query, int64_t key) const {
    if (dropout == 0) return 1;
    const uint64_t stream = dropout_stream(static_cast<uint64_t>(static_cast<int64_t>(keys[b])),
                                           static_cast<uint64_t>(salt));
    const double unit = dropout_bits(stream, attention_element(head, query, key)) * 0x1p-32;
    return unit < dropout ? 0 : 1 / (1 - dropout);
  }
};

inline double dot(const Values& a, int64_t at_a, const Values& b, int64_t at_b, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[at_a + i] * b[at_b + i];
  return sum;
}

// y and lse of the inputs of the operation.
inline std::vector<Values> naive_attention(const AttentionCase& c, const std::vector<Values>& in) {
  Values y(c.y_shape().elements()), lse(c.batch * c.heads * c.tokens);
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const int64_t kv = h / (c.heads / c.kv_heads);
      for (int64_t q = 0; q < c.tokens; ++q) {
        const auto query = c.place(0, b, q, h);
        Values p(c.tokens);
        double sum = 0;
        for (int64_t k = 0; k < c.tokens; ++k) {
          const auto key = c.place(1, b, k, kv);
          if (!c.sees(b, q, k)) continue;
          p[k] = std::exp(c.used_scale() *
                          dot(in[query.input], query.offset, in[key.input], key.offset, c.size));
          sum += p[k];
        }
        for (int64_t k = 0; k < c.tokens; ++k) {
          const auto value = c.place(2, b, k, kv);
          const double weight = p[k] / sum * c.drop_factor(b, h, q, k);
          for (int64_t i = 0; i < c.size; ++i) {
            y[((b * c.tokens + q) * c.heads + h) * c.size + i] +=
                weight * in[value.input][value.offset + i];
          }
        }
        lse[(b * c.heads + h) * c.tokens + q] = std::log(sum);
      }
    }
  }
  return {y, lse};
}

// The outputs of attention_grad from its inputs.
inline std::vector<Values> naive_attention_grad(const AttentionCase& c,
                                                const std::vector<Values>& in) {
  const Values &y = in[5], &lse = in[6], &dy = in[7];
  std::vector<Values> out(c.packed ? 1 : 3);
  for (size_t o = 0; o < out.size(); ++o) out[o].resize(in[o].size());
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      const int64_t kv = h / (c.heads / c.kv_heads);
      for (int64_t q = 0; q < c.tokens; ++q) {
        const auto query = c.place(0, b, q, h);
        const int64_t at = ((b * c.tokens + q) * c.heads + h) * c.size;
        const double delta = dot(y, at, dy, at, c.size);
        for (int64_t k = 0; k < c.tokens; ++k) {
          if (!c.sees(b, q, k)) continue;
          const auto key = c.place(1, b, k, kv), value = c.place(2, b, k, kv);
          const double score = c.used_scale() * dot(in[query.input], query.offset, in[key.input],
                                                    key.offset, c.size);
          const double p = std::exp(score - lse[(b * c.heads + h) * c.tokens + q]);
          const double kept = c.drop_factor(b, h, q, k);
          const double slope = dot(dy, at, in[value.input], value.offset, c.size) * kept;
          const double d_score = p * (slope - delta) * c.used_scale();
          for (int64_t i = 0; i < c.size; ++i) {
            out[query.input][query.offset + i] += d_score * in[key.input][key.offset + i];
            out[key.input][key.offset + i] += d_score * in[query.input][query.offset + i];
            out[value.input][value.offset + i] += p * kept * dy[at + i];
          }
        }
      }
    }
  }
  return out;
}

}  // namespace fleet
