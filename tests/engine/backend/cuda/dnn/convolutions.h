// The convolutions of a network, for tests of what cuDNN makes of them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "backend/cuda/dnn_convolution.h"
#include "backend/cuda/layouts.h"
#include "models/model.h"
#include "models/training.h"

namespace fleet::cuda::dnn {

// All convolutions of a network, in all directions, as conv2d.cc asks for them.
inline std::vector<Convolution> convolutions(const std::string& model, int64_t batch, DType dtype) {
  ConfigTree tree;
  Program program;
  build_training(program, {.model = model,
                           .model_settings = tree.validate(model_registry().get(model).schema),
                           .batch = batch,
                           .columns = image_columns(model_registry().get(model).image)});
  std::vector<Convolution> made;
  std::set<std::string> known;
  for (const Op& op : program.ops()) {
    if (op.type() != "conv2d") continue;
    const Shape x = program.var(op.inputs[0]).shape, weight = program.var(op.inputs[1]).shape;
    const int64_t groups = op.attributes.integer("groups");
    const int64_t block = channel_block(x[1], groups, dtype);
    Convolution conv{.window = window_of(op.attributes, weight[2], weight[3]),
                     .x = stored(x, block),
                     .weight = stored(weight, block),
                     .y = program.var(op.outputs[0]).shape,
                     .dtype = dtype};
    for (auto direction : {Convolution::kForward, Convolution::kData, Convolution::kWeight}) {
      conv.direction = direction;
      if (known.insert(conv.text()).second) made.push_back(conv);
    }
  }
  return made;
}

}  // namespace fleet::cuda::dnn
