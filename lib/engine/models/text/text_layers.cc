#include "models/text/text_layers.h"

#include "base/error.h"

namespace fleet {

// Salts of attention's dropout: behind those that Network::dropout() counts.
static constexpr int64_t kAttentionSalts = int64_t{1} << 32;

TextLayers::TextLayers(Network& network, const NamedVars& inputs, const LanguageModel& model)
    : net_(network), model_(model) {
  ids_ = find_var(inputs, "input_ids");
  positions_ = find_var(inputs, "position_ids");
  documents_ = find_var(inputs, "document_ids");
  sample_key_ = find_var(inputs, "sample_key");
  const int64_t length = net_.shape(ids_)[1];
  if (length <= model.positions) return;
  throw Error(ErrorCode::kUsage,
              "sequences have " + std::to_string(length) + " tokens, but the model has " +
                  std::to_string(model.positions) + " positions",
              model.family, "use shorter sequences, or a model for longer ones");
}

VarId TextLayers::table(const std::string& name, int64_t rows) {
  return net_.parameter(name, {rows, model_.hidden}, init::normal(model_.deviation));
}

VarId TextLayers::linear(VarId x, const std::string& name, int64_t features, bool bias,
                         double deviation) {
  const int64_t axis = net_.shape(x).rank() - 1;
  std::vector<VarId> inputs = {
      x, net_.parameter(name + ".weight", {features, net_.shape(x)[static_cast<int>(axis)]},
                        init::normal(deviation))};
  if (bias) inputs.push_back(net_.parameter(name + ".bias", {features}, init::constant(0)));
  return net_.apply("fc", inputs, {{"axis", axis}});
}

std::vector<VarId> TextLayers::norm_inputs(std::vector<VarId> inputs, const std::string& name) {
  inputs.push_back(net_.parameter(name + ".weight", {model_.hidden}, init::constant(1)));
  if (model_.norm == NormKind::kLayer) {
    inputs.push_back(net_.parameter(name + ".bias", {model_.hidden}, init::constant(0)));
  }
  return inputs;
}

VarId TextLayers::norm(VarId x, const std::string& name) {
  const std::vector<VarId> inputs = norm_inputs({x}, name);
  if (model_.norm == NormKind::kRms) {
    return net_.apply("rms_norm", inputs, {{"epsilon", model_.epsilon}});
  }
  const int64_t axis = net_.shape(x).rank() - 1;
  return net_.apply("layer_norm", inputs, {{"epsilon", model_.epsilon}, {"begin_norm_axis", axis}});
}

std::pair<VarId, VarId> TextLayers::add_norm(VarId x, VarId residual, const std::string& name) {
  const char* type = model_.norm == NormKind::kRms ? "add_rms_norm" : "add_layer_norm";
  const std::vector<VarId> outputs =
      net_.apply_all(type, norm_inputs({x, residual}, name), {{"epsilon", model_.epsilon}});
  return {outputs[0], outputs[1]};
}

VarId TextLayers::activation(const std::string& type, bool approximate, VarId x) {
  Attributes attributes;
  if (type == "gelu" || type == "geglu") attributes.set("approximate", approximate);
  return net_.apply(type, {x}, attributes);
}

VarId TextLayers::attend(VarId q, VarId k, VarId v, int64_t index) {
  const auto layer = static_cast<size_t>(index);
  const double dropout = net_.training() ? model_.attention_dropout : 0;
  return net_.apply("attention", {q, k, v, documents_, dropout > 0 ? sample_key_ : kNoVar},
                    {{"causal", !model_.encoder.has_value()},
                     {"window", model_.windows[layer]},
                     {"scale", model_.scales[layer]},
                     {"dropout", dropout},
                     {"kv_heads", model_.kv_heads},
                     {"salt", kAttentionSalts + index}});
}

}  // namespace fleet
