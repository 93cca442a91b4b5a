// The description of a language model: a decoder (gpt2, llama, mistral, qwen2, qwen3), in which a
// token sees those before it, or an encoder (bert, roberta, distilbert), in which it sees all. The
// families of transformers differ in these values only.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "graph/op.h"

namespace fleet {

// The normalization in front of each attention, of each MLP, and of the head; in an encoder that of
// the embeddings, and behind each attention and MLP.
enum class NormKind {
  kRms,    // rms_norm: a scale
  kLayer,  // layer_norm: a scale and a bias
};

// Parts of an encoder that a decoder lacks: segments, and heads for several tasks. Names equal
// those in transformers, and those of our parameters, without ".weight" and ".bias".
struct EncoderParts {
  int64_t types = 0;           // rows of the table of segments; 0: no table
  bool segments = false;       // token_type_ids choose its rows; false: all tokens have row 0
  int64_t first_position = 0;  // the row of position 0 in the table of positions
  int64_t num_classes = 2;     // outputs of the heads for classes
  std::vector<std::string> class_names;  // by class, of id2label; empty: none
  // Dropout rates of the values that an attention adds, and in front of the last layer of a head.
  double attended_dropout = 0, token_dropout = 0, classes_dropout = 0, span_dropout = 0;

  std::string embeddings, layer;  // "bert.embeddings.", "bert.encoder.layer."
  // Of a layer, behind its number and a dot. qkv is our name of the three joined.
  std::string qkv, query, key, value, attention_output, attention_norm, up, down, output_norm;
  std::string pooler;  // "": the pooled output is the first token's row
  // Of masked tokens: a layer, `transform_activation`, a norm, and the head; decoder_bias is a
  // whole name. other_bias: another name of decoder_bias in files; "": none.
  std::string transform, transform_activation, transform_norm, decoder, decoder_bias, other_bias;
  bool transform_approximate = false;  // as LanguageModel::approximate
  std::string next_sentence;           // "": none
  // Of the text: a layer and its activation of the first token's row, then the last layer.
  std::string classes_dense, classes_activation, classes;
  bool classes_dropout_first = false;  // a dropout in front of classes_dense, too
  std::string tokens = "classifier", spans = "qa_outputs";
};

struct LanguageModel {
  std::string family;                                  // a name in language_family_registry()
  std::optional<EncoderParts> encoder = std::nullopt;  // nullopt: a decoder

  int64_t vocabulary = 0, hidden = 0, layers = 0;
  int64_t heads = 0, kv_heads = 0, head_size = 0;  // heads * head_size need not be `hidden`
  int64_t mlp = 0;                                 // features inside an MLP
  int64_t positions = 0;                           // the longest sequence

  NormKind norm = NormKind::kRms;
  double epsilon = 1e-6;
  // The operation between an MLP's layers. Gated ones (swiglu, geglu) take the products of gate
  // and up, one behind the other.
  std::string activation = "swiglu";
  bool approximate = false;  // gelu and geglu use tanh
  bool gated() const { return activation == "swiglu" || activation == "geglu"; }

  bool qkv_bias = false, output_bias = false, mlp_bias = false;
  bool head_norms = false;  // rms_norm of each head of queries and of keys, in front of rope
  bool tied = false;        // the head is the embedding
  bool sparse = false;      // the embedding's gradient has only the rows of a step
  int64_t padding_id = -1;  // reads of this row of the embedding give it no gradient; -1: none

  // Attributes of rope_table; nullopt: learned positions.
  std::optional<Attributes> rope = std::nullopt;
  // By layer: how many tokens a query sees, itself included; 0: all before it.
  std::vector<int64_t> windows;
  // By layer: the factor of its scores; 0: 1 / sqrt(head_size).
  std::vector<double> scales;

  // residual_dropout: rate for the values that an attention and an MLP add; in an encoder for those
  // of an MLP alone.
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
  // Other names in files, which `name` precedes: those of a tied head, or of older versions.
  std::vector<std::string> aliases = {};
  bool under_aliases = false;  // exports write it under these names, too
  // The outputs of the network that need it; empty: all.
  std::vector<std::string> outputs = {};
};

// The parts of all parameters, those of one parameter behind one another. A tied head has none.
std::vector<WeightPart> weight_parts(const LanguageModel& model);
// Those of a network with these outputs (models/model.h).
std::vector<WeightPart> weight_parts(const LanguageModel& model,
                                     const std::set<std::string>& outputs);

}  // namespace fleet
