// optimizer.layer_decay: the factor of each parameter's learning rate, for models of all kinds.
#include "optim/layer_decay.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/model.h"
#include "models/training.h"
#include "optim/optimizer.h"
#include "tests/errors.h"

namespace fleet {
namespace {

Settings decay_of(const std::string& value) {
  return ConfigTree::from_json(R"({"name": "sgd", "layer_decay": )" + value + "}", "test")
      .validate(optimizer_schema("sgd"));
}

struct Built {
  Program program;
  Training training;
  double rate(const std::string& name) const {
    const VarId id = program.find(name);
    return id == kNoVar ? -1 : program.var(id).rate;
  }
};

Built built(const std::string& model, const std::string& json, const std::vector<Column>& columns,
            const std::string& task = "image_classification") {
  Built all;
  TrainingOptions options{
      .model = model,
      .model_settings =
          ConfigTree::from_json(json, "test").validate(model_registry().get(model).schema),
      .task = task,
      .task_settings = TrainingOptions::default_task_settings(task),
      .batch = 2,
      .columns = columns};
  all.training = build_training(all.program, options);
  set_layer_rates(all.program, all.training.forward, all.training.blocks, decay_of("0.5"));
  return all;
}

Built built(const std::string& model, const std::string& json, const Shape& image) {
  return built(model, json, image_columns(image));
}

// The same for Swin: a merge belongs to the layer behind it.
TEST(LayerDecay, Swin_HasTheRatesOfTimm) {
  const Built swin = built("swin_t", R"({"num_classes": 3})", {3, 32, 32});
  EXPECT_EQ(swin.rate("features.0.0.weight"), std::pow(0.5, 13));
  EXPECT_EQ(swin.rate("features.1.0.attn.relative_position_bias_table"), std::pow(0.5, 12));
  EXPECT_EQ(swin.rate("features.2.reduction.weight"), std::pow(0.5, 10));
  EXPECT_EQ(swin.rate("features.3.0.attn.qkv.weight"), std::pow(0.5, 10));
  EXPECT_EQ(swin.rate("features.7.1.mlp.3.weight"), 0.5);
  EXPECT_EQ(swin.rate("head.weight"), 1);
}

// The layers of timm's group_matcher for ViT: embeddings, 12 blocks, the last with the norm, and
// the head.
TEST(LayerDecay, Vit_HasTheRatesOfTimm) {
  const Built vit = built("vit_b_32", R"({"num_classes": 3})", {3, 32, 32});
  EXPECT_EQ(vit.rate("conv_proj.weight"), std::pow(0.5, 13));
  EXPECT_EQ(vit.rate("class_token"), std::pow(0.5, 13));
  EXPECT_EQ(vit.rate("encoder.pos_embedding"), std::pow(0.5, 13));
  EXPECT_EQ(vit.rate("encoder.layers.encoder_layer_0.ln_1.weight"), std::pow(0.5, 12));
  EXPECT_EQ(vit.rate("encoder.layers.encoder_layer_11.mlp.3.bias"), 0.5);
  EXPECT_EQ(vit.rate("encoder.ln.weight"), 0.5);
  EXPECT_EQ(vit.rate("heads.head.weight"), 1);
}

TEST(LayerDecay, ConvolutionalModels_CountTheirBlocks) {
  const Built resnet = built("resnet18", R"({"num_classes": 3, "width": 8})", {3, 32, 32});
  EXPECT_EQ(resnet.rate("conv1.weight"), std::pow(0.5, 9));
  EXPECT_EQ(resnet.rate("layer1.0.conv1.weight"), std::pow(0.5, 8));
  EXPECT_EQ(resnet.rate("layer2.0.downsample.0.weight"), std::pow(0.5, 6));
  EXPECT_EQ(resnet.rate("layer4.1.bn2.bias"), 0.5);
  EXPECT_EQ(resnet.rate("fc.bias"), 1);
  const Built convnext = built("convnext_tiny", R"({"num_classes": 3})", {3, 32, 32});
  // The stem and 18 blocks: a step between stages belongs to the block behind it.
  EXPECT_EQ(convnext.training.blocks.size(), 22u);
  EXPECT_EQ(convnext.rate("features.0.0.weight"), std::pow(0.5, 19));
  EXPECT_EQ(convnext.rate("features.2.1.weight"), std::pow(0.5, 15));
  EXPECT_EQ(convnext.rate("classifier.2.weight"), 1);
}

// Embeddings, two layers, and the pooler with the head.
TEST(LayerDecay, Bert_CountsItsLayers) {
  std::vector<Column> columns = {{"label", DType::kInt64, {}}};
  for (const char* name : {"input_ids", "position_ids", "document_ids", "token_type_ids"}) {
    columns.push_back({name, DType::kInt64, {8}});
  }
  const Built bert = built("bert", R"({"vocab_size": 21, "hidden_size": 16, "num_classes": 3,
      "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 2,
      "max_position_embeddings": 24})",
                           columns, "sequence_classification");
  EXPECT_EQ(bert.rate("bert.embeddings.word_embeddings.weight"), 0.125);
  EXPECT_EQ(bert.rate("bert.embeddings.LayerNorm.bias"), 0.125);
  EXPECT_EQ(bert.rate("bert.encoder.layer.0.output.dense.weight"), 0.25);
  EXPECT_EQ(bert.rate("bert.encoder.layer.1.attention.output.LayerNorm.weight"), 0.5);
  EXPECT_EQ(bert.rate("bert.pooler.dense.weight"), 1);
  EXPECT_EQ(bert.rate("classifier.weight"), 1);
}

TEST(LayerDecay, ModelWithoutBlocks_IsRefused) {
  Program program;
  const SectionId forward = program.add_section("forward", {.training = true});
  EXPECT_THAT(thrown_by([&] { set_layer_rates(program, forward, {}, decay_of("0.9")); }),
              IsUsageError("optimizer.layer_decay"));
  EXPECT_EQ(set_layer_rates(program, forward, {}, decay_of("1")), "");
}

}  // namespace
}  // namespace fleet
