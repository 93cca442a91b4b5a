// Predicts classes of unlabelled images with the weights of a trained job.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "store/store.h"
#include "tensor/device.h"
#include "train/job.h"

namespace fleet {

// The keys of the job's section `predict`.
Schema predict_schema();
// Whether the job predicts instead of training: predict.input names something.
bool predicts(const Job& job);

struct PredictOptions {
  int rank = 0, world = 1;
  Communicator* control = nullptr;  // for host memory; null in a job of one rank
  std::shared_ptr<Store> store;     // null in a job of one rank
  const std::atomic<int>* stop = nullptr;
};

struct PredictResult {
  int64_t images = 0, failed = 0;  // over all ranks
  int stopped_by = 0;              // the stop signal; 0: none. If set, nothing is written
};

// Writes a JSON line for each image to predict.output, in the order of predict.input: "file",
// "class", "class_name" (if the weights or the job name classes), "probability", and "top", the
// predict.top_k likeliest; or "file" and "error" for an image that cannot be used. Images are
// prepared as in an evaluation, and computed in float32. All ranks call it and share the work.
// kUsage if there are no weights, if they do not fit, or if ranks differ in images or weights
// (errors of StartComparison); kIo if the output cannot be written.
PredictResult predict(const Job& job, Device& device, const PredictOptions& options);

}  // namespace fleet
