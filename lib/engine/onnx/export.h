// A trained network as an ONNX file, for onnxruntime and others.
#pragma once

#include <set>
#include <string>

#include "exec/executor.h"
#include "train/job.h"
#include "train/model_card.h"

namespace fleet {

// Writes the job's network, as an evaluation computes it, to `path`. Returns a one-line summary.
//
// A classifier of images: input "image", float32 [batch, C, H, W] with a dynamic batch, made of
// pixels as (pixel / 255 - mean) / std; output "logits", float32 [batch, num_classes], or
// "pixel_logits" [batch, num_classes, H, W]. The metadata have "model", "mean", "std" and, if the
// weights' file states them, "classes" and "image" (train/model_card.h). The image size comes from
// the weights' file, otherwise the job's.
//
// A language model: inputs "input_ids" and "attention_mask" (1 for tokens, 0 for padding), int64
// [batch, length] with a dynamic batch and length, of bert also "token_type_ids", and for masked
// tokens "masked_positions" [batch, masked]. Outputs: "logits" of the next token [batch, length,
// vocabulary] or of classes [batch, num_classes], "token_logits", "span_logits", "masked_logits",
// "next_sentence_logits", as the task has them, and of an encoder "hidden" [batch, length, H].
//
// The weights come from find_trained_weights(). kUsage without any, or if they do not fit;
// kUnsupported naming an operation without an ONNX equivalent; kIo.
std::string export_onnx(const Job& job, const std::string& path);

// Also exports a language model. outputs: the network's (models/task.h).
std::string text_onnx_file(const Job& job, const std::set<std::string>& outputs, Executor& weights,
                           const ModelCard& card = {});

// Returns the bytes of such a file: the network of `job` for images of this size (channels, height,
// width) with the values that `weights` has under the model's names. card: stored in the metadata.
std::string onnx_file(const Job& job, const Shape& image, Executor& weights,
                      const ModelCard& card = {});

}  // namespace fleet
