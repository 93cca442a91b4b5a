// Layers that decoders and encoders share.
#pragma once

#include <string>
#include <utility>

#include "models/named_vars.h"
#include "models/network.h"
#include "models/text/language_model.h"

namespace fleet {

class TextLayers {
 public:
  // inputs: see build_language_model(). kUsage if the sequences exceed model.positions.
  TextLayers(Network& network, const NamedVars& inputs, const LanguageModel& model);

 protected:
  // A parameter [rows, hidden].
  VarId table(const std::string& name, int64_t rows);
  // y = x weightᵀ + bias, with normal initial weights of this deviation.
  VarId linear(VarId x, const std::string& name, int64_t features, bool bias, double deviation);
  // The normalization of the model, over the last dimension.
  VarId norm(VarId x, const std::string& name);
  // The norm of the sum, and the sum.
  std::pair<VarId, VarId> add_norm(VarId x, VarId residual, const std::string& name);
  // The operation of this name; approximate: gelu and geglu use tanh.
  VarId activation(const std::string& type, bool approximate, VarId x);
  // attention of the layer `index`; without k and v, q is packed.
  VarId attend(VarId q, VarId k, VarId v, int64_t index);

  Network& net_;
  const LanguageModel& model_;
  VarId ids_, positions_, documents_, sample_key_;

 private:
  std::vector<VarId> norm_inputs(std::vector<VarId> inputs, const std::string& name);
};

// build_language_model() for a decoder, and for an encoder.
NamedVars build_decoder(Network& network, const NamedVars& inputs, const LanguageModel& model);
NamedVars build_encoder(Network& network, const NamedVars& inputs, const LanguageModel& model);

}  // namespace fleet
