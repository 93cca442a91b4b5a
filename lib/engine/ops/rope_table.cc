// rope_table: cos and sin of position_ids[b, s] * frequency[i], for rope (Su et al., 2021).
// position_ids: int32 or int64 [B, S]; cos, sin: float32 [B, S, dim / 2]. The attributes have the
// names and meanings of rope_parameters in Hugging Face's config.json (rope_frequencies.h); those
// that a type does not use have no effect on it.
//
// Type "dynamic" depends on the length of the sequence, which is the largest position of its row
// plus 1. transformers takes the largest of the batch, and keeps that for later batches; ours does
// not depend on how samples are put together.
#include "graph/program.h"
#include "ops/mixed_precision.h"
#include "ops/rope_frequencies.h"

namespace fleet {

FLEET_OP(rope_table) {
  def.help =
      "cos and sin for rope: of position_ids [B, S] times the frequencies of the type (default, "
      "linear, dynamic, llama3, yarn), which has the numbers of Hugging Face's rope_parameters";
  def.inputs = {{"position_ids"}};
  def.outputs = {{"cos"}, {"sin"}};
  def.attributes = {{"dim", int64_t{0}},
                    {"theta", 10000.0},
                    {"type", std::string("default")},
                    {"factor", 1.0},
                    {"original_max_position_embeddings", int64_t{0}},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"attention_factor", 0.0},  // 0: computed from factor, mscale, mscale_all_dim
                    {"beta_fast", 32.0},
                    {"beta_slow", 1.0},
                    {"mscale", 0.0},
                    {"mscale_all_dim", 0.0},
                    {"truncate", true}};
  // The tables are float32 in any case. A black operation would make rope float32, too.
  def.add_trait<MixedPrecision>().precision = Precision::kGray;
  def.infer = [](ShapeContext& context) {
    const Shape& positions = context.shape(0);
    const DType dtype = context.dtype(0);
    context.require(dtype == DType::kInt32 || dtype == DType::kInt64,
                    "position_ids must be int32 or int64");
    context.require(positions.rank() == 2,
                    "position_ids must be [batch, sequence], not " + positions.text());
    const RopeSettings settings(context.attributes());
    const Shape table{positions[0], positions[1], settings.dim / 2};
    context.set(0, table, DType::kFloat32);
    context.set(1, table, DType::kFloat32);
  };
}

}  // namespace fleet
