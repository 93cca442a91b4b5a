// The networks that become ONNX files, with the names of their inputs and outputs there.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "onnx/exporter.h"
#include "train/job.h"

namespace fleet {

struct OnnxPort {
  std::string name;
  VarId var = kNoVar;  // an output's
  DType dtype = DType::kFloat32;
  std::vector<std::string> dims;  // numbers, or names of those that are open: "batch"
};

struct OnnxNetwork {
  Program program;  // an evaluation's only
  std::vector<OnnxPort> inputs, outputs;
  // Appends the nodes that compute feeds of the program from other inputs; may be empty.
  std::function<void(OnnxGraph&)> begin;

  std::vector<VarId> results() const;  // the outputs' variables
};

// The inputs and outputs of export_onnx(). kUnsupported if the model is not a classifier of images.
OnnxNetwork image_network(const Job& job, const Shape& image, int64_t batch);
// outputs: the model's, as wanted_outputs() has them. The program's feeds are the model's inputs,
// [batch, length]; masked_positions is [batch, masked].
OnnxNetwork text_network(const Job& job, const std::set<std::string>& outputs, int64_t batch,
                         int64_t length, int64_t masked = 1);

}  // namespace fleet
