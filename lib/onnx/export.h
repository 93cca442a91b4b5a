// A trained network as an ONNX file, for onnxruntime and others.
#pragma once

#include <string>

#include "exec/executor.h"
#include "train/job.h"
#include "train/model_card.h"

namespace fleet {

// Writes the job's network as an evaluation computes it to `path`: input "image", float32 [batch,
// C, H, W] with the batch open, made of pixels as (pixel / 255 - mean) / std; output "logits",
// float32 [batch, num_classes]. The metadata have "model", "mean", "std" and, where the weights'
// file names them, "classes" and "image" (train/model_card.h). The size of the images is that of
// this file, else the job's. Returns a line on what was written.
//
// The weights: checkpoint.weights; else the checkpoint that checkpoint.resume names; else the
// newest (train/trained_weights.h).
//
// kUsage where there are none, or they do not fit; kUnsupported naming an operation that ONNX has
// no form for; kIo.
std::string export_onnx(const Job& job, const std::string& path);

// The bytes of such a file: the network of `job` for images of this size (channels, height, width)
// with the values that `weights` has under the model's names. card: goes into its metadata.
std::string onnx_file(const Job& job, const Shape& image, Executor& weights,
                      const ModelCard& card = {});

}  // namespace fleet
