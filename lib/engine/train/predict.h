// Predicts classes of unlabelled images with the weights of a trained job.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "comm/communicator.h"
#include "store/store.h"
#include "tensor/device.h"
#include "train/job.h"

namespace fleet {

// The keys of the job's section `predict`.
Schema predict_schema();
// Whether the job predicts instead of training: predict.input names something.
bool predicts(const Job& job);

// Predictions as JSON lines or as CSV (RFC 4180). Writes a temporary file, which finish() renames;
// without finish() nothing remains. Not thread-safe.
class PredictionFile {
 public:
  struct Format {
    bool csv = false;
    int64_t top_k = 1;  // classes of a line
  };
  // path: "-" is standard output. names: of classes; may be empty. kIo.
  PredictionFile(const std::string& path, std::vector<std::string> names, const Format& format);
  ~PredictionFile();
  PredictionFile(const PredictionFile&) = delete;

  // ranked: class and probability of the top_k likeliest classes, in descending order. kIo.
  void add(const std::string& file, std::span<const double> ranked);
  void add_failure(const std::string& file, const std::string& why);
  void finish();

 private:
  void write_csv_head();
  void add_csv(const std::string& file, std::span<const double> ranked, const std::string& why);
  void write(const std::string& line);
  void flush();

  const std::string path_;
  const std::vector<std::string> names_;
  const Format format_;
  std::string aside_;  // "": standard output
  UniqueFd fd_;
  std::string pending_;
};

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
