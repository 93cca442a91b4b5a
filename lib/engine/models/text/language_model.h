// The description of a decoder-only language model. The families of transformers (gpt2, llama,
// mistral, qwen2, qwen3) differ in these values only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/op.h"

namespace fleet {

// The normalization in front of each attention, of each MLP, and of the head.
enum class NormKind {
  kRms,    // rms_norm: a scale
  kLayer,  // layer_norm: a scale and a bias
};

struct LanguageModel {
  std::string family;  // a name in language_family_registry()

  int64_t vocabulary = 0, hidden = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_size = 0;  // heads * head_size need not be `hidden`
  int64_t mlp = 0;                                 // features inside an MLP
  int64_t positions = 0;                           // the longest sequence

  NormKind norm = NormKind::kRms;
  double epsilon = 1e-6;
  // The operation between the MLP's layers. Gated ones (swiglu, geglu) take the products of gate
  // and up, one behind the other.
  std::string activation = "swiglu";
  bool approximate = false;  // gelu and geglu use tanh
  bool gated() const { return activation == "swiglu" || activation == "geglu"; }

  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;  // rms_norm of each head of queries and of keys, in front of rope
  bool tied = false;        // the head is the embedding
  int64_t padding_id = -1;  // reads of this row of the embedding give it no gradient; -1: none

  // Attributes of rope_table; nullopt: learned positions.
  std::optional<Attributes> rope = std::nullopt;
  // By layer: how many tokens a query sees, itself included; 0: all before it.
  std::vector<int64_t> windows;
  // By layer: the factor of its scores; 0: 1 / sqrt(head_size).
  std::vector<double> scales;

  double embedding_dropout = 0, attention_dropout = 0, residual_dropout = 0;
  // Standard deviation of initial weights, and that of the layers that end in the residual stream.
  // Biases start as 0, scales of norms as 1.
  double deviation = 0.02, residual_deviation = 0.02;

  int64_t qkv_heads() const { return heads + 2 * kv_heads; }
};

// Where the values of a parameter are in a file of transformers. A parameter consists of parts,
// which are joined along the first dimension in this order: queries, keys and values; gate and up.
struct WeightPart {
  std::string parameter;  // ours: "model.layers.0.self_attn.qkv_proj.weight"
  // Theirs: "model.layers.0.self_attn.q_proj.weight".
  std::string name;
  int64_t rows = 0;  // size of this part in the parameter's first dimension
  // Stored as [in, out], as transformers' Conv1D does; parameters are [out, in].
  bool transposed = false;
};

// The parts of all parameters, those of one parameter behind one another. A tied head has none.
std::vector<WeightPart> weight_parts(const LanguageModel& model);

}  // namespace fleet
