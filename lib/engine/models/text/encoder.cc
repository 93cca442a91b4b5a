// The network of an encoder: post-norm layers in which a token sees all of its document (Devlin et
// al. 2018), and the heads that are wanted.
#include "models/text/text_layers.h"

namespace fleet {
namespace {

class EncoderBuilder : TextLayers {
 public:
  EncoderBuilder(Network& network, const NamedVars& inputs, const LanguageModel& model)
      : TextLayers(network, inputs, model), own_(*model.encoder) {
    types_ = find_var(inputs, "token_type_ids");
    masked_positions_ = find_var(inputs, "masked_positions");
  }

  NamedVars build() {
    hidden_ = net_.block("embedding", embedding());
    for (int64_t i = 0; i < model_.layers; ++i) hidden_ = layer(hidden_, i);
    NamedVars outputs = {{"hidden", hidden_}};
    if (net_.wants("pooled")) outputs["pooled"] = pooled();
    if (net_.wants("masked_hidden")) add_masked_head(&outputs);
    if (net_.wants("next_sentence_logits")) {
      outputs["next_sentence_logits"] = dense(pooled(), own_.next_sentence, 2);
    }
    if (net_.wants("logits")) outputs["logits"] = class_logits();
    if (net_.wants("token_logits")) {
      const VarId rows = net_.dropout(hidden_, own_.token_dropout);
      outputs["token_logits"] = dense(rows, own_.tokens, own_.num_classes);
    }
    if (net_.wants("span_logits")) {
      const VarId logits = dense(net_.dropout(hidden_, own_.span_dropout), own_.spans, 2);
      outputs["span_logits"] = without_padding(logits);
    }
    return outputs;
  }

 private:
  VarId dense(VarId x, const std::string& name, int64_t features) {
    return linear(x, name, features, true, model_.deviation);
  }

  VarId word_table() {
    return table(own_.embeddings + "word_embeddings.weight", model_.vocabulary);
  }

  // The first `count` rows of a table behind `skipped` ones.
  VarId rows_of(VarId rows, int64_t skipped, int64_t count) {
    if (skipped == 0 && count == net_.shape(rows)[0]) return rows;
    return net_.apply("slice", {rows},
                      {{"axis", int64_t{0}}, {"start", skipped}, {"end", skipped + count}});
  }

  VarId embedding() {
    VarId x = net_.apply("embedding", {ids_, word_table()},
                         {{"padding_idx", model_.padding_id}, {"sparse", model_.sparse}});
    VarId places = table(own_.embeddings + "position_embeddings.weight",
                         own_.first_position + model_.positions);
    places = rows_of(places, own_.first_position, model_.positions);
    if (own_.types > 0) {
      const VarId types = table(own_.embeddings + "token_type_embeddings.weight", own_.types);
      if (own_.segments && types_ != kNoVar) {
        x = net_.add(x, net_.apply("embedding", {types_, types}));
      } else {  // one row for all tokens: it is cheaper to add it to the positions
        const VarId row = net_.reshape(rows_of(types, 0, 1), {model_.hidden});
        places = net_.apply("elementwise_add", {places, row}, {{"axis", int64_t{1}}});
      }
    }
    const VarId place = net_.apply("embedding", {positions_, places});
    return net_.dropout(add_norm(x, place, own_.embeddings + "LayerNorm").first,
                        model_.embedding_dropout);
  }

  VarId layer(VarId x, int64_t index) {
    const std::string name = own_.layer + std::to_string(index) + ".";
    VarId y = dense(x, name + own_.qkv, 3 * model_.hidden);
    y = net_.reshape(y, {0, 0, 3 * model_.heads, model_.head_size});
    y = net_.reshape(attend(y, kNoVar, kNoVar, index), {0, 0, model_.hidden});
    y = dense(y, name + own_.attention_output, model_.hidden);
    x = add_norm(net_.dropout(y, own_.attended_dropout), x, name + own_.attention_norm).first;
    y = dense(x, name + own_.up, model_.mlp);
    y = activation(model_.activation, model_.approximate, y);
    y = net_.dropout(dense(y, name + own_.down, model_.hidden), model_.residual_dropout);
    x = add_norm(y, x, name + own_.output_norm).first;
    return net_.block("layers." + std::to_string(index), x);
  }

  VarId first_token() {
    const VarId rows = net_.apply(
        "slice", {hidden_}, {{"axis", int64_t{1}}, {"start", int64_t{0}}, {"end", int64_t{1}}});
    return net_.reshape(rows, {0, model_.hidden});
  }

  VarId pooled() {
    if (pooled_ != kNoVar) return pooled_;
    pooled_ = first_token();
    if (!own_.pooler.empty()) {
      pooled_ = net_.activation("tanh", dense(pooled_, own_.pooler, model_.hidden));
    }
    return pooled_;
  }

  VarId class_logits() {
    VarId x;
    if (own_.classes_dense == own_.pooler) {
      x = pooled();
    } else {
      x = first_token();
      if (own_.classes_dropout_first) x = net_.dropout(x, own_.classes_dropout);
      x = dense(x, own_.classes_dense, model_.hidden);
      x = net_.activation(own_.classes_activation, x);
    }
    return dense(net_.dropout(x, own_.classes_dropout), own_.classes, own_.num_classes);
  }

  // A span cannot start or end in the padding: the softmax over a text must not depend on its
  // length.
  VarId without_padding(VarId logits) {
    if (documents_ == kNoVar) return logits;
    constexpr double kImpossible = -1e4;  // within the range of float16
    VarId mask = net_.apply("cast", {documents_}, {{"to", std::string("float32")}});
    mask = net_.relu(net_.apply("scale", {mask}, {{"scale", -1.0}}));
    mask = net_.apply("scale", {mask}, {{"scale", kImpossible}});
    return net_.apply("elementwise_add", {logits, mask}, {{"axis", int64_t{0}}});
  }

  void add_masked_head(NamedVars* outputs) {
    VarId x = net_.apply("gather_rows", {hidden_, masked_positions_});
    x = activation(own_.transform_activation, own_.transform_approximate,
                   dense(x, own_.transform, model_.hidden));
    (*outputs)["masked_hidden"] = norm(x, own_.transform_norm);
    (*outputs)["head"] =
        model_.tied ? word_table() : table(own_.decoder + ".weight", model_.vocabulary);
    (*outputs)["head_bias"] =
        net_.parameter(own_.decoder_bias, {model_.vocabulary}, init::constant(0));
  }

  const EncoderParts& own_;
  VarId types_, masked_positions_, hidden_ = kNoVar, pooled_ = kNoVar;
};

}  // namespace

NamedVars build_encoder(Network& network, const NamedVars& inputs, const LanguageModel& model) {
  return EncoderBuilder(network, inputs, model).build();
}

}  // namespace fleet
