// Predictions of a trained job for unlabelled samples: classes, numbers or embeddings of images or
// texts.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "store/store.h"
#include "tensor/device.h"
#include "train/job.h"
#include "train/saved_rows.h"

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
  OpenSavedRows open_rows = {};  // for a job with tables
};

struct PredictResult {
  int64_t samples = 0, failed = 0;  // over all ranks
  std::string unit = "image";       // what a sample is
  int stopped_by = 0;               // the stop signal; 0: none. If set, nothing is written
};

// Writes a record for each sample to predict.output, in the order of predict.input
// (prediction_file.h): what the job's task predicts, with "file", a path or the place of a text; or
// an embedding (predict.embedding). JSON lines have "class", "class_name" (if the weights or the
// job name classes), "probability" and "top", the predict.top_k likeliest; "value" or "values";
// "probability" alone for an event; "embedding"; or "error" for a sample that cannot be used.
// Samples are prepared as in an evaluation, and computed in float32. All ranks call it and share
// the work. kUsage if there are no weights, if they do not fit, if task, source and keys do not go
// together, or if ranks differ in samples or weights (errors of StartComparison); kIo if the output
// cannot be written.
PredictResult predict(const Job& job, Device& device, const PredictOptions& options);

}  // namespace fleet
