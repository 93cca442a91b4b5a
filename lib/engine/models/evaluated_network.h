// A network of images as an evaluation computes it, for predictions and teachers.
#pragma once

#include <set>
#include <string>

#include "models/model.h"

namespace fleet {

struct EvaluatedNetwork {
  Program program;
  SectionId section = -1;  // "evaluate"
  VarId image = kNoVar;    // the feed "image", float32 [N, C, H, W]
  NamedVars outputs;
};

// The model with these settings, up to the outputs `wanted`. image: N, C, H, W.
EvaluatedNetwork evaluated_network(const std::string& model, const Settings& settings,
                                   const Shape& image, const std::set<std::string>& wanted);

// Applies model.batch_norm_epsilon, before the network is built.
void set_norms(Network& network, const Settings& model_settings);
// Applies model.use_cudnn and model.winograd, after it is built.
void choose_kernels(Program& program, const Settings& model_settings);

}  // namespace fleet
